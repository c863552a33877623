#include "server/issue/snowflake/snowflake_lanes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/time/thread_index.h"

namespace firn {

Status SnowflakeLanes::Start() {
  for (const auto& lane : lanes_) FIRN_TRY(lane->Start());
  return {};
}

// Only issuing threads call ThreadIndex, so the first threads get one lane each.
size_t SnowflakeLanes::OwnLane() const {
  const int index = ThreadIndex();
  return index < 0 ? 0 : static_cast<uint32_t>(index) % static_cast<uint32_t>(lanes_.size());
}

bool SnowflakeLanes::TryOne(Method method, int64_t* id) {
  size_t lane = OwnLane();
  for (size_t tries = 0; tries < lanes_.size(); ++tries, lane = After(lane)) {
    if (lanes_[lane]->TryOne(method, id)) return true;
  }
  return false;
}

bool SnowflakeLanes::TryRun(Method method, int64_t want, IdRun* run) {
  size_t lane = OwnLane();
  for (size_t tries = 0; tries < lanes_.size(); ++tries, lane = After(lane)) {
    if (lanes_[lane]->TryRun(method, want, run)) return true;
  }
  return false;
}

// For a call that needs several ticks: returns the lane with the fewest waiting calls, preferably
// the thread's own lane. For others: the thread's own lane.
size_t SnowflakeLanes::LaneFor(const IssueCall& call) const {
  size_t best = OwnLane();
  if (!lanes_[best]->NeedsTicks(call)) return best;
  size_t least = lanes_[best]->waiting();
  for (size_t lane = After(best), i = 1; i < lanes_.size(); lane = After(lane), ++i) {
    if (const size_t waiting = lanes_[lane]->waiting(); waiting < least) {
      best = lane;
      least = waiting;
    }
  }
  return best;
}

// Once the call has a part of its ids or waits in a line, its ticket is the lane's number, from 1.
Verdict SnowflakeLanes::Issue(IssueCall& call) {
  size_t lane = call.ticket != 0 ? call.ticket - 1 : LaneFor(call);
  std::optional<Refusal> refused;
  std::optional<Refusal> waits;
  std::chrono::microseconds ask_again_in = std::chrono::microseconds::max();
  for (size_t tries = 0; tries < lanes_.size(); ++tries, lane = After(lane)) {
    const Verdict verdict = lanes_[lane]->Issue(call);
    if (verdict == Verdict::kIssued) return verdict;
    if (!call.runs().empty() || call.place != nullptr) call.ticket = lane + 1;
    if (verdict == Verdict::kWait) {
      if (call.ticket != 0) return verdict;
      ask_again_in = std::min(ask_again_in, call.ask_again_in());
      waits = call.refusal();
    } else if (!refused) {
      refused = call.refusal();
    }
  }
  if (waits) return call.Wait(ask_again_in, *std::move(waits));
  return call.Refuse(*std::move(refused));
}

std::optional<Refusal> SnowflakeLanes::WhyNot() const {
  std::optional<Refusal> first;
  for (const auto& lane : lanes_) {
    std::optional<Refusal> why = lane->WhyNot();
    if (!why) return why;
    if (!first) first = std::move(why);
  }
  return first;
}

int64_t SnowflakeLanes::NextAtLeast() const {
  int64_t least = 0;
  for (const auto& lane : lanes_) {
    const int64_t next = lane->NextAtLeast();
    if (next != 0 && (least == 0 || next < least)) least = next;
  }
  return least;
}

void SnowflakeLanes::Close() {
  for (const auto& lane : lanes_) lane->Close();
}

}  // namespace firn
