#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/time/clock.h"
#include "server/issue/segment/owned_numbers.h"
#include "server/issue/segment/range_source.h"

namespace firn {

// How a server asks the owner of a tag for numbers. Thread-safe.
class OwnerLink {
 public:
  virtual ~OwnerLink() = default;

  // Takes up to `count` numbers at the server that owns the tag's partition. `done` is called once,
  // perhaps at once, on any thread. An empty range: ask again, since the owner is changing or
  // fetches numbers. An error of the owner says why it has none.
  virtual void Take(const TagDefinition& tag, int64_t count, RangeSource::TakeDone done) = 0;

  // Whether the server that owns the tag's partition is known.
  virtual bool Knows(const std::string& tag) const = 0;
};

// The source of a tag with buffer = owner: the memory of its owner, here or at another server. A
// request that finds no owner is kept until there is one, for at most kHold. One request at a time.
class OwnerSource final : public RangeSource, public std::enable_shared_from_this<OwnerSource> {
 public:
  static constexpr Milliseconds kHold{1'900};

  // References must outlive it.
  OwnerSource(std::shared_ptr<OwnedNumbers> own, OwnerLink& owner, const Clock& clock)
      : own_(std::move(own)), owner_(owner), clock_(clock) {}

  void Take(const TagDefinition& tag, int64_t size, TakeDone done) override;
  void GiveBack(const TagDefinition&, Range, GiveBackDone done) override {
    done(Conflict("numbers that the owner has issued stay with the call"));
  }
  bool permits_no_buffer() const override { return true; }

  bool knows_owner(const std::string& tag) const { return owner_.Knows(tag); }

  // Requests end at once from now on, also the one in progress.
  void Close();

  // Continues the request: call it when the owner may have numbers now, and about every 10 ms.
  void Continue();

 private:
  struct Request {
    TagDefinition tag;
    int64_t size;
    TakeDone done;
    BootMs since;
  };

  // Ends the request with this answer unless it is to be continued.
  void Settle(Result<Range> answer);

  const std::shared_ptr<OwnedNumbers> own_;
  OwnerLink& owner_;
  const Clock& clock_;
  std::mutex mutex_;  // guards the members below
  std::optional<Request> request_{};
  bool asking_ = false;  // an owner
  bool closed_ = false;
};

}  // namespace firn
