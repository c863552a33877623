#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "client/fetch_size.h"
#include "client/local_ranges.h"
#include "client/local_supply.h"
#include "client/run_buffer.h"
#include "client/thread_index.h"
#include "common/backoff.h"
#include "common/clock.h"

namespace firn {

// One tag's ids in memory; the rules are those of local_ranges.h. Thread-safe. Must outlive every
// fetch that it asked for.
//
//     fetch -> next buffer -> buffer in use -> a lane for each thread -> id
//              '-------- under the mutex --------'   its thread's alone
class TagSupply {
 public:
  TagSupply(const LocalTag& options, RangeFetcher& fetcher, const Clock& clock, Entropy& entropy);

  const std::string& tag() const { return tag_; }

  // As LocalSupply's.
  bool TryTake(int64_t* id) {
    const int index = ThreadIndex();
    if (index < 0) [[unlikely]]
      return TakeFromBuffer(id);
    Lane& lane = lanes_[static_cast<size_t>(index)];
    if (lane.left == 0 || Aged(lane.asked_at)) [[unlikely]] {
      if (!Fill(lane)) return false;
    }
    *id = lane.next;
    lane.next += lane.stride;
    --lane.left;
    // Its thread alone writes it, so no locked instruction is needed.
    lane.taken.store(lane.taken.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return true;
  }

  // Ids that wait in a lane or buffer count as neither.
  LocalSupply::Counts counts() const;

 private:
  // The piece that a thread takes its ids from.
  struct alignas(64) Lane {
    int64_t left = 0;
    int64_t next = 0;
    int64_t stride = 1;
    BootMs asked_at;
    std::atomic<uint64_t> taken = 0;
  };

  bool Aged(BootMs asked_at) const { return max_age_ && clock_.Boot() - asked_at > *max_age_; }

  bool Fill(Lane& lane);
  bool TakeFromBuffer(int64_t* id);

  // Under the mutex.
  bool Prepare(BootMs now);
  void Drop(RunBuffer& buffer, BootMs now);
  void Advance(BootMs now);
  IdRun CutPiece(int64_t count);
  int64_t ToFetch(BootMs now);
  void OnFailure(const Status& why, int64_t count, BootMs now);

  void Fetch(int64_t count, BootMs now);

  const std::string tag_;
  const std::optional<Milliseconds> max_age_;
  RangeFetcher& fetcher_;
  const Clock& clock_;

  mutable std::mutex mutex_;  // guards all but the lanes
  RunBuffer in_use_;
  RunBuffer next_;
  FetchSize size_;
  bool fetching_ = false;
  bool starved_ = false;                  // since in_use_ became it
  std::optional<BootMs> in_use_since_{};  // empty until the first fetch
  BootMs not_before_;                     // no fetch, after a failure
  Backoff soon_;
  Backoff late_;
  uint64_t taken_without_lane_ = 0;
  uint64_t missed_ = 0;
  uint64_t dropped_ = 0;

  std::array<Lane, kThreadIndexMax> lanes_;
};

}  // namespace firn
