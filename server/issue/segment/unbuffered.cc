#include "server/issue/segment/unbuffered.h"

#include <algorithm>
#include <utility>

namespace firn {

Result<std::shared_ptr<Unbuffered>> Unbuffered::Make(const TagDefinition& tag, RangedParts parts) {
  if (!parts.source.permits_no_buffer()) {
    return Invalid("store '" + tag.store + "' does not permit buffer = none");
  }
  return std::shared_ptr<Unbuffered>(new Unbuffered(tag, std::move(parts)));
}

Unbuffered::Unbuffered(const TagDefinition& tag, RangedParts parts)
    : RangedStrategy(tag, std::move(parts)) {}

Verdict Unbuffered::Issue(IssueCall& call) {
  if (sentinel_.InChild()) return call.Refuse(ClosedHere());
  const BootMs now = parts_.clock.Boot();
  Lock lock(mutex_);
  if (closed_) return call.Refuse(ClosedNowLocked());
  if (IsStale(call)) return RefuseStale(call);
  if (const auto portion = portions_.find(call.ticket); portion != portions_.end()) {
    const Range range = portion->second.range;
    portions_.erase(portion);
    call.ticket = 0;
    call.Add({range.begin, range.size(), 1});
    if (call.is_served()) return Verdict::kIssued;
  }
  return Queue(call, now, std::move(lock));
}

// Gives the call a ticket unless it still has a queued one. Then the call waits.
Verdict Unbuffered::Queue(IssueCall& call, BootMs now, Lock lock) {
  const bool waits =
      call.ticket != 0 && !waiting_.empty() && call.ticket >= waiting_.front().number;
  if (!waits) {
    if (waiting_.size() == kTicketsMax) {
      return call.Refuse({Reason::kOverloaded, "too many calls wait for this tag", 50, true});
    }
    call.ticket = ++tickets_;
    waiting_.push_back({call.ticket, call.missing(), call.request().form == Form::kOneRun});
  }
  if (gate_.open(now)) {
    Fetch(std::move(lock), now);
    lock = Lock(mutex_);
  }
  return gate_.Answer(call, now);
}

// If the request in flight includes the ticket, the others share its numbers.
void Unbuffered::ForgetLocked(uint64_t ticket) {
  if (const auto portion = portions_.find(ticket); portion != portions_.end()) {
    counts_.wasted += portion->second.range.size();
    portions_.erase(portion);
  }
  const auto found = std::ranges::lower_bound(waiting_, ticket, {}, &Ticket::number);
  if (found == waiting_.end() || found->number != ticket) return;
  if (found - waiting_.begin() < static_cast<ptrdiff_t>(asked_)) --asked_;
  waiting_.erase(found);
}

// Requests numbers for all waiting calls, up to kCountMax. Requests one if no call waits: in
// RetryIfIdle, or if all callers have left.
int64_t Unbuffered::AskLocked() {
  asked_ = 0;
  int64_t size = 0;
  for (const Ticket& ticket : waiting_) {
    if (asked_ > 0 && size + ticket.count > kCountMax) break;
    size += ticket.count;
    ++asked_;
  }
  return std::max<int64_t>(size, 1);
}

int64_t Unbuffered::CountAll() {
  const Lock lock(mutex_);
  return AskLocked();
}

// Rules 2 and 3.
Status Unbuffered::KeepLocked(Range range, BootMs now) {
  DropOldLocked(now);
  for (; asked_ > 0 && !range.empty(); --asked_) {
    const Ticket ticket = waiting_.front();
    if (ticket.whole && range.size() < ticket.count) break;
    const int64_t count = std::min(ticket.count, range.size());
    portions_.emplace(ticket.number, Portion{{range.begin, range.begin + count}, now});
    range.begin += count;
    waiting_.pop_front();
  }
  counts_.wasted += range.size();
  return {};
}

// Drops the tickets of the failed request; callers that still wait get new tickets.
Status Unbuffered::FailedLocked(Status why, BootMs) {
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(asked_));
  asked_ = 0;
  return why;
}

void Unbuffered::RetryIfIdle(BootMs now) {
  Lock lock(mutex_);
  if (closed_ || !waiting_.empty() || gate_.trouble().ok() || !gate_.open(now)) return;
  Fetch(std::move(lock), now);
}

void Unbuffered::RetryNow() {
  const Lock lock(mutex_);
  gate_.RetryNow();
}

bool Unbuffered::TickLocked(BootMs now) {
  DropOldLocked(now);
  return !waiting_.empty();
}

void Unbuffered::DropOldLocked(BootMs now) {
  while (!portions_.empty() && now - portions_.begin()->second.since > kKeep) {
    counts_.wasted += portions_.begin()->second.range.size();
    portions_.erase(portions_.begin());
  }
}

int64_t Unbuffered::SupplyLocked() const {
  int64_t supply = 0;
  for (const auto& [ticket, portion] : portions_) supply += portion.range.size();
  return supply;
}

std::vector<Range> Unbuffered::EmptyLocked() {
  std::vector<Range> ranges;
  for (const auto& [ticket, portion] : std::exchange(portions_, {})) {
    ranges.push_back(portion.range);
  }
  return ranges;
}

int64_t Unbuffered::TrimLocked(int64_t, BootMs) {
  const int64_t supply = SupplyLocked();
  portions_.clear();
  return supply;
}

void Unbuffered::CloseLocked() {
  counts_.wasted += SupplyLocked();
  portions_.clear();
  waiting_.clear();
  asked_ = 0;
}

}  // namespace firn
