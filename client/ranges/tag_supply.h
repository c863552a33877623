#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/local_ranges.h"
#include "client/local_supply.h"
#include "client/ranges/fetch_size.h"
#include "common/base/units.h"
#include "common/id/id_run.h"
#include "common/time/backoff.h"
#include "common/time/clock.h"
#include "common/time/thread_index.h"

namespace firn {

// The runs of one fetch, used from the front. A value, thread-compatible.
class RunBuffer {
 public:
  RunBuffer() = default;
  // `asked_at`: no id was issued before this time.
  RunBuffer(std::vector<IdRun> runs, BootMs asked_at)
      : runs_(std::move(runs)), asked_at_(asked_at) {
    for (const IdRun& run : runs_) size_ += run.count;
    left_ = size_;
  }

  int64_t size() const { return size_; }
  int64_t left() const { return left_; }
  BootMs asked_at() const { return asked_at_; }

  // Takes up to `count` ids, at least one. The buffer must not be empty.
  IdRun Cut(int64_t count) {
    const IdRun& run = runs_[run_];
    const IdRun piece{run.At(used_), std::min(count, run.count - used_), run.stride};
    left_ -= piece.count;
    used_ += piece.count;
    if (used_ == run.count) {
      ++run_;
      used_ = 0;
    }
    return piece;
  }

 private:
  std::vector<IdRun> runs_;
  BootMs asked_at_;
  int64_t size_ = 0;
  int64_t left_ = 0;
  size_t run_ = 0;    // index of the current run
  int64_t used_ = 0;  // used ids of that run
};

// The prefetched ids of one tag, by the rules of local_ranges.h. Thread-safe. Must outlive all of
// its fetches.
//
//     fetch -> next buffer -> buffer in use -> a lane for each thread -> id
//              '-------- under the mutex --------'   its thread's alone
class TagSupply {
 public:
  TagSupply(const LocalTag& options, RangeFetcher& fetcher, const Clock& clock, Entropy& entropy);

  const std::string& tag() const { return tag_; }

  // This and AwaitAndTake: as in LocalSupply.
  std::optional<int64_t> TryTake() {
    const std::optional<int64_t> id = Take();
    if (!id) [[unlikely]]
      missed_.fetch_add(1, std::memory_order_relaxed);
    return id;
  }
  std::optional<int64_t> AwaitAndTake(Milliseconds patience);

  // Ids that are still in a lane or buffer do not count.
  LocalSupply::Counts counts() const;

 private:
  // The piece from which a thread takes its ids.
  struct alignas(64) Lane {
    int64_t left = 0;
    int64_t next = 0;
    int64_t stride = 1;
    uint64_t deletions = 0;  // deletions_ when the piece was cut
    BootMs asked_at;
    std::atomic<uint64_t> taken = 0;
  };

  std::optional<int64_t> Take() {
    const int index = ThreadIndex();
    if (index < 0) [[unlikely]]
      return TakeFromBuffer();
    Lane& lane = lanes_[static_cast<size_t>(index)];
    if (lane.left == 0 || Deleted(lane) || Aged(lane.asked_at)) [[unlikely]] {
      if (!Fill(lane)) return std::nullopt;
    }
    const int64_t id = lane.next;
    lane.next += lane.stride;
    --lane.left;
    // Only its thread writes it, so no locked instruction is needed.
    lane.taken.store(lane.taken.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return id;
  }

  bool Deleted(const Lane& lane) const {
    return lane.deletions != deletions_.load(std::memory_order_relaxed);
  }
  bool Aged(BootMs asked_at) const { return max_age_ && clock_.Boot() - asked_at > *max_age_; }

  bool Fill(Lane& lane);
  std::optional<int64_t> TakeFromBuffer();
  // Waits until the fetch in progress has ended, at most `patience`. Returns false if there is no
  // fetch, or after the timeout.
  bool AwaitFetch(Milliseconds patience);

  // Under the mutex.
  bool Prepare(BootMs now);
  void DropAged(RunBuffer& buffer, BootMs now);
  void Drop(RunBuffer& buffer);
  void Advance(BootMs now);
  int64_t ToFetch(BootMs now);
  // Returns whether the rest of the current buffer is so small that the next one must be fetched.
  bool RunsLow() const;
  void OnFailure(const Status& why, int64_t count, BootMs now);

  void Fetch(int64_t count, BootMs now);

  const std::string tag_;
  const std::optional<Milliseconds> max_age_;
  RangeFetcher& fetcher_;
  const Clock& clock_;

  // How often a server reported the tag as deleted. Ids fetched before such a report are dropped.
  // Written under the mutex.
  std::atomic<uint64_t> deletions_ = 0;
  std::atomic<uint64_t> missed_ = 0, awaited_ = 0;

  mutable std::mutex mutex_;  // guards all members except those above and the lanes
  std::condition_variable fetched_;
  uint64_t fetches_ended_ = 0;
  RunBuffer in_use_;
  RunBuffer next_;
  FetchSize size_;
  bool fetching_ = false;
  bool starved_ = false;                         // calls found nothing since in_use_ was set
  std::optional<BootMs> in_use_since_{};         // empty until the first fetch
  Milliseconds last_use_ = Milliseconds::max();  // duration of the previous buffer
  Milliseconds last_fetch_{0};                   // duration of the last fetch
  BootMs not_before_;                            // no fetch before this time, after a failure
  Backoff soon_;
  Backoff late_;
  uint64_t taken_without_lane_ = 0;
  uint64_t dropped_ = 0;

  std::array<Lane, kThreadIndexMax> lanes_;
};

}  // namespace firn
