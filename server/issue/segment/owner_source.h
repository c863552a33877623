#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/time/clock.h"
#include "server/issue/refusal.h"
#include "server/issue/segment/owned_numbers.h"
#include "server/issue/segment/range_source.h"

namespace firn {

// Requests numbers from the owner of a tag. Thread-safe.
class OwnerLink {
 public:
  virtual ~OwnerLink() = default;

  // Returns how many numbers to request, at least 1. Called on any thread when the request is sent,
  // so that it includes all calls that wait by then.
  using Count = std::function<int64_t()>;

  // Takes at most count() numbers from the server that owns the tag's partition. `done` is called
  // once, on any thread, perhaps before this returns. An empty range: retry, because the owner is
  // changing or fetching numbers. kNotFound: retry; the server that was asked does not serve the
  // tag, perhaps not yet. Other errors say why the owner has no numbers. May throw bad_alloc; then
  // `done` is not called.
  virtual void Take(const TagDefinition& tag, Count count, RangeSource::TakeDone done) = 0;

  // Returns a number that changes whenever the tag's partition gets another owner.
  virtual int64_t ChangeOf(const std::string& tag) const = 0;

  // Returns whether this server has started and is still reading who owns the partitions. Calls are
  // then refused, so that clients use another server.
  virtual bool Starts() const = 0;
  static Refusal Starting() {
    return {Reason::kNotReady, "the owners of tags with buffer = owner have not been read yet", 50,
            true};
  }
  // Returns whether this server owns the tag's partition, or knows its owner and has lately learnt
  // that the owner may take numbers and can be reached.
  virtual bool Knows(const std::string& tag) const = 0;
  // Returns why this server owns no numbers, or cannot reach the tag's owner; empty: unknown.
  virtual std::string Trouble(const std::string& tag) const = 0;
};

// The source of a tag with buffer = owner: the memory of the tag's owner, which may be this server.
// A request without an owner waits until there is one, for at most kHold. One request at a time.
//
// An attempt ends with its answer, when the partition gets another owner, or after kLate: a lost
// owner may leave a connection that waits for its name to be resolved. A later answer to it is
// ignored. If it is only sent later, it does not count the calls that wait by then, because an
// earlier answer to the next attempt would serve them. The pauses between attempts grow to
// kPauseMax while the same server owns the partition.
class OwnerSource final : public RangeSource, public std::enable_shared_from_this<OwnerSource> {
 public:
  static constexpr Milliseconds kHold{1'900}, kLate{1'500}, kPauseMax{40};

  // References must outlive the object. `stir` is called when a request begins, which needs
  // Continue until it ends; may be empty.
  OwnerSource(std::shared_ptr<OwnedNumbers> own, OwnerLink& owner, const Clock& clock,
              std::function<void()> stir)
      : own_(std::move(own)), owner_(owner), clock_(clock), stir_(std::move(stir)) {}

  // Sets a function that replaces the size of each Take. Call before the first Take.
  void CountBy(OwnerLink::Count count) { count_ = std::move(count); }

  void Take(const TagDefinition& tag, int64_t size, TakeDone done) override;
  void GiveBack(const TagDefinition&, Range, GiveBackDone done) override {
    done(Conflict("numbers that the owner has issued stay with the call"));
  }
  bool permits_no_buffer() const override { return true; }

  bool starts() const { return owner_.Starts(); }
  int64_t change_of(const std::string& tag) const { return owner_.ChangeOf(tag); }
  bool knows_owner(const std::string& tag) const { return owner_.Knows(tag); }
  // Returns why requests have got no numbers for kHold. `reason`: of the server that was asked.
  std::string WhyNone(const std::string& tag, const std::string& reason = {}) const;

  // Ends the request in progress as soon as possible, and all later ones.
  void Close();

  // Continues the request. Call this when the owner may have numbers, and about every 10 ms.
  void Continue();

 private:
  struct Request {
    TagDefinition tag;
    TakeDone done;
    BootMs since;
    Milliseconds pause{0};  // before the next attempt
    BootMs next_at{};       // of the next attempt
  };

  // Returns the count for an attempt that is about to be sent.
  int64_t CountFor(uint64_t ask);
  // Ends the attempt as if it had to be retried, if it can no longer be answered in time.
  void EndLateAttempt();
  // Ends the request with the answer to the unanswered attempt `ask`; 0: to none. Does not end it
  // if it has to be continued.
  void Settle(uint64_t ask, Result<Range> answer);

  const std::shared_ptr<OwnedNumbers> own_;
  OwnerLink& owner_;
  const Clock& clock_;
  const std::function<void()> stir_;
  OwnerLink::Count count_{};
  std::mutex mutex_;  // guards the members below
  std::optional<Request> request_{};
  uint64_t asks_ = 0;    // number of attempts so far
  uint64_t asking_ = 0;  // the attempt that has not been answered; 0: none
  BootMs asked_at_{};    // when it began
  int64_t change_ = 0;   // OwnerLink::ChangeOf at that time
  bool closed_ = false;
};

}  // namespace firn
