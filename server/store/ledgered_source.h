#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "server/issue/segment/range_source.h"
#include "server/issue/segment/range_store.h"
#include "server/store/control_thread.h"
#include "server/store/ledger.h"
#include "server/store/store_thread.h"
#include "server/store/waste.h"

namespace firn {

// Ranges that a store picks and the ledger covers:
//
//   control thread   where the tag's next range has to begin (Ledger::Begin)
//   store's thread   the store's Check, once a tag, then its Advance from there
//   control thread   what it gave is looked at, then Ledger::Cover; then the answer
//
// A range that somebody else's move has overtaken is thrown away, counted, and another one asked
// for, at most kTriesMax times. Thread-safe; answers come on the control thread.
//
// Sharp edge: Stop before the control thread ends, so that the store's thread does not post to a
// ledger that is gone.
class LedgeredSource final : public RangeSource {
 public:
  static constexpr int kTriesMax = 8;

  // Runs a task on the store's thread; false: it will not be run.
  using PostToStore = std::function<bool(std::function<void()> task)>;

  // `ledger` lives on the thread that `control` posts to; both outlive this. Without a `post` the
  // store gets a thread of its own; a simulation, which has one thread only, passes its own queue.
  LedgeredSource(std::unique_ptr<RangeStore> store, Ledger& ledger, PostToControl control,
                 PostToStore post = {});
  ~LedgeredSource() override;  // stops

  void Take(const TagDefinition& tag, int64_t size, TakeDone done) override;

  // Refused: a store's counter cannot be turned back.
  void GiveBack(const TagDefinition& tag, Range tail, GiveBackDone done) override;
  bool permits_no_buffer() const override { return false; }

  // Waits for the call at hand; what is asked for afterwards is refused with kUnavailable.
  void Stop() {
    if (thread_) thread_->Stop();
  }

  // Ranges that the store had picked and the ledger did not cover.
  int64_t wasted(const std::string& tag) const override { return waste_.Of(tag); }

 private:
  struct Errand;  // one Take on its way

  void AskLedger(const std::shared_ptr<Errand>& errand);
  void AskStore(const std::shared_ptr<Errand>& errand, int64_t at_least);
  Result<Range> CallStore(const Errand& errand, int64_t at_least);
  void Cover(const std::shared_ptr<Errand>& errand, Range range);

  const std::unique_ptr<RangeStore> store_;
  Ledger& ledger_;
  const PostToControl control_;
  Waste waste_;
  std::set<std::string> checked_;      // on the store's thread: tags that Check has let pass
  std::optional<StoreThread> thread_;  // ends before what it works with
  PostToStore post_;
};

}  // namespace firn
