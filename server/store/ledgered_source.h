#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "common/time/clock.h"
#include "server/issue/segment/range_source.h"
#include "server/issue/segment/range_store.h"
#include "server/store/control_thread.h"
#include "server/store/ledger.h"
#include "server/store/store_thread.h"
#include "server/store/waste.h"

namespace firn {

// Ranges that a store picks and the ledger covers:
//
//   control thread   Ledger::Where: where the tag's next range must begin
//   store's thread   the store's Check, once per tag, then its Advance; its range is checked
//   control thread   Ledger::Cover, then the answer
//
// If the store is unreachable (not if it refuses), and the tag permits it, the ledger picks ranges
// until the store returns one again (Ledger::ExtendForStore).
//
// If another server's write passes a range before it is covered, the range is discarded and
// counted, and another one is requested, at most kTriesMax times. Thread-safe; answers are
// delivered on the control thread.
//
// Call Stop before the control thread ends, so that the store's thread does not post to a destroyed
// ledger.
class LedgeredSource final : public RangeSource {
 public:
  static constexpr int kTriesMax = 8;

  // Queues a task for the store's thread; returns false if the task will not run.
  using PostToStore = std::function<bool(std::function<void()> task)>;

  // `ledger` is used on the thread that `control` posts to; `clock` provides the time at which a
  // store's outage began. All must outlive this. Without `post` the store gets its own thread; a
  // simulation, which has only one thread, passes its own queue.
  LedgeredSource(std::unique_ptr<RangeStore> store, Ledger& ledger, PostToControl control,
                 const Clock& clock, PostToStore post = {});
  ~LedgeredSource() override;  // stops

  void Take(const TagDefinition& tag, int64_t size, TakeDone done) override;

  // Always refused, because a store's counter cannot be moved back.
  void GiveBack(const TagDefinition& tag, Range tail, GiveBackDone done) override;
  bool permits_no_buffer() const override { return false; }
  bool permits_stand_in() const override { return store_->permits_stand_in(); }
  StoodIn stood_in(const std::string& tag) const override;

  // Waits for the store's current call. Later requests are refused with kUnavailable.
  void Stop() {
    if (thread_) thread_->Stop();
  }

  // Numbers of the ranges that the store picked and the ledger did not cover.
  int64_t wasted(const std::string& tag) const override { return waste_.Of(tag); }

 private:
  struct Errand;  // one Take in progress

  void AskLedger(const std::shared_ptr<Errand>& errand);
  void CountThrown(Errand& errand, const Result<LedgerPlace>& place);
  void AskStore(const std::shared_ptr<Errand>& errand, const LedgerPlace& place);
  Result<Range> CallStore(const Errand& errand, const LedgerPlace& place);
  void OnStore(const std::shared_ptr<Errand>& errand, const Result<Range>& range, bool away);
  void StandIn(const std::shared_ptr<Errand>& errand, const Status& why);
  void NoteStandIn(const std::string& tag, Range range, const Status& why);
  void NoteStore(const std::string& tag);
  void Cover(const std::shared_ptr<Errand>& errand, Range range);

  const std::unique_ptr<RangeStore> store_;
  Ledger& ledger_;
  const PostToControl control_;
  const Clock& clock_;
  Waste waste_;
  mutable std::mutex mutex_;                 // guards stood_in_
  std::map<std::string, StoodIn> stood_in_;  // by tag
  std::set<std::string> checked_;            // on the store's thread: tags that passed Check
  std::optional<StoreThread> thread_;        // destroyed before the members that it uses
  PostToStore post_;
};

}  // namespace firn
