#include "client/ranges/tag_supply.h"

#include <algorithm>
#include <utility>

namespace firn {
namespace {

// The share of a buffer that one thread takes at once. It is small enough that a buffer serves many
// threads, and large enough that the lock is rarely taken.
constexpr int64_t kPieces = 64;
constexpr int64_t kPieceMax = 16'384;

bool PassesByItself(Code code) { return code == Code::kUnavailable || code == Code::kUnknown; }

}  // namespace

TagSupply::TagSupply(const LocalTag& options, RangeFetcher& fetcher, const Clock& clock,
                     Entropy& entropy)
    : tag_(options.tag),
      max_age_(options.max_age),
      fetcher_(fetcher),
      clock_(clock),
      size_(std::max<int64_t>(1, options.fetch_max), std::max(Milliseconds(1), options.lasts)),
      soon_({.first = Milliseconds(10), .cap = Milliseconds(1000)}, entropy),
      late_({.first = Milliseconds(1000), .cap = Milliseconds(30'000)}, entropy) {}

bool TagSupply::Fill(Lane& lane) {
  const BootMs now = clock_.Boot();
  int64_t to_fetch = 0;
  {
    const std::scoped_lock lock(mutex_);
    dropped_ += static_cast<uint64_t>(std::exchange(lane.left, 0));
    if (Prepare(now)) {
      const IdRun piece = in_use_.Cut(std::clamp<int64_t>(in_use_.size() / kPieces, 1, kPieceMax));
      lane.left = piece.count;
      lane.next = piece.first;
      lane.stride = piece.stride;
      lane.deletions = deletions_.load(std::memory_order_relaxed);
      lane.asked_at = in_use_.asked_at();
    }
    to_fetch = ToFetch(now);
  }
  if (to_fetch > 0) Fetch(to_fetch, now);
  return lane.left > 0;
}

std::optional<int64_t> TagSupply::TakeFromBuffer() {
  const BootMs now = clock_.Boot();
  int64_t to_fetch = 0;
  std::optional<int64_t> id;
  {
    const std::scoped_lock lock(mutex_);
    if (Prepare(now)) {
      id = in_use_.Cut(1).first;
      ++taken_without_lane_;
    }
    to_fetch = ToFetch(now);
  }
  if (to_fetch > 0) Fetch(to_fetch, now);
  return id;
}

std::optional<int64_t> TagSupply::AwaitAndTake(Milliseconds patience) {
  const BootMs until = clock_.Boot() + patience;
  for (Milliseconds left = patience; left > Milliseconds(0); left = until - clock_.Boot()) {
    if (!AwaitFetch(left)) return std::nullopt;
    const std::optional<int64_t> id = Take();
    if (!id) continue;  // other threads took all
    awaited_.fetch_add(1, std::memory_order_relaxed);
    return id;
  }
  return std::nullopt;
}

bool TagSupply::AwaitFetch(Milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (!fetching_) return in_use_.left() > 0 || next_.left() > 0;
  return fetched_.wait_for(lock, patience,
                           [this, seen = fetches_ended_] { return fetches_ended_ != seen; });
}

// Returns whether the current buffer has usable ids, after switching to the next buffer if needed.
bool TagSupply::Prepare(BootMs now) {
  DropAged(in_use_, now);
  DropAged(next_, now);
  if (in_use_.left() == 0) Advance(now);
  if (in_use_.left() > 0) return true;
  starved_ = true;
  return false;
}

void TagSupply::DropAged(RunBuffer& buffer, BootMs now) {
  if (buffer.left() == 0 || !max_age_ || now - buffer.asked_at() <= *max_age_) return;
  Drop(buffer);
}

void TagSupply::Drop(RunBuffer& buffer) {
  dropped_ += static_cast<uint64_t>(buffer.left());
  buffer = RunBuffer();
}

void TagSupply::Advance(BootMs now) {
  if (next_.left() == 0) return;
  if (in_use_since_) {
    last_use_ = now - *in_use_since_;
    size_.Used(last_use_, starved_);
  }
  in_use_since_ = now;
  starved_ = false;
  in_use_ = std::exchange(next_, RunBuffer());
}

bool TagSupply::RunsLow() const {
  const bool half_lasts = last_use_ / 2 >= last_fetch_;
  return in_use_.left() <= (half_lasts ? in_use_.size() / 2 : in_use_.size());
}

// Returns how many ids to request now; 0: none.
int64_t TagSupply::ToFetch(BootMs now) {
  const bool wanted = next_.left() == 0 && RunsLow();
  if (!wanted || fetching_ || now < not_before_) return 0;
  fetching_ = true;
  return size_.Next(now);
}

// Must not be called under the mutex: the fetcher has its own locks.
void TagSupply::Fetch(int64_t count, BootMs now) {
  fetcher_.Fetch(tag_, count, [this, count, now](Result<std::vector<IdRun>> runs) {
    const std::scoped_lock lock(mutex_);
    fetching_ = false;
    ++fetches_ended_;
    fetched_.notify_all();
    const BootMs answered_at = clock_.Boot();
    if (!runs.ok()) return OnFailure(runs.status(), count, answered_at);
    last_fetch_ = answered_at - now;
    next_ = RunBuffer(*std::move(runs), now);
    soon_.Reset();
    late_.Reset();
  });
}

void TagSupply::OnFailure(const Status& why, int64_t count, BootMs now) {
  if (why.code() == Code::kNotFound) {
    Drop(in_use_);
    Drop(next_);
    deletions_.fetch_add(1, std::memory_order_relaxed);
  }
  const bool too_many = why.code() == Code::kInvalid && size_.Refused(count, now);
  const bool soon = too_many || PassesByItself(why.code());
  not_before_ = now + (soon ? soon_ : late_).Next();
}

LocalSupply::Counts TagSupply::counts() const {
  const std::scoped_lock lock(mutex_);
  LocalSupply::Counts counts{.taken = taken_without_lane_,
                             .missed = missed_.load(std::memory_order_relaxed),
                             .awaited = awaited_.load(std::memory_order_relaxed),
                             .dropped = dropped_};
  for (const Lane& lane : lanes_) counts.taken += lane.taken.load(std::memory_order_relaxed);
  return counts;
}

}  // namespace firn
