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
    : parts_(std::move(parts)),
      tag_(std::make_shared<const TagDefinition>(tag)),
      gate_(parts_.entropy) {}

Verdict Unbuffered::Issue(IssueCall& call) {
  if (sentinel_.InChild()) return call.Refuse(ClosedHere());
  const BootMs now = parts_.clock.Boot();
  Lock lock(mutex_);
  if (closed_) return call.Refuse(abandoned_ ? Redefined() : ClosedHere());
  if (call.runs().empty()) call.drops = drops_;
  if (call.drops != drops_) {
    counts_.wasted += call.runs().count();
    return call.Refuse(Dropped());
  }
  if (const auto portion = portions_.find(call.ticket); portion != portions_.end()) {
    const Range range = portion->second.range;
    portions_.erase(portion);
    call.ticket = 0;
    call.Add({range.begin, range.size(), 1});
    if (call.missing() == 0) return Verdict::kIssued;
  }
  return Queue(call, now, std::move(lock));
}

std::optional<Refusal> Unbuffered::WhyNot() const {
  if (sentinel_.InChild()) return ClosedHere();
  const Lock lock(mutex_);
  return closed_ ? std::optional(ClosedHere()) : gate_.WhyNot(parts_.clock.Boot());
}

// A call without a ticket that is still good gets one; then it waits.
Verdict Unbuffered::Queue(IssueCall& call, BootMs now, Lock lock) {
  const bool waits =
      call.ticket != 0 && !waiting_.empty() && call.ticket >= waiting_.front().number;
  if (!waits) {
    if (waiting_.size() == kTicketsMax) {
      return call.Refuse({Reason::kOverloaded, "too many calls wait for this tag", 50, true});
    }
    call.ticket = ++tickets_;
    waiting_.push_back({call.ticket, call.missing(), now});
  }
  if (gate_.open(now)) {
    Fetch(std::move(lock), now);
    lock = Lock(mutex_);
  }
  const Verdict verdict = gate_.Answer(call, now);
  // A call that is refused leaves no trace, unless it has been asked for already.
  const bool unasked = waiting_.size() > asked_ && waiting_.back().number == call.ticket;
  if (verdict == Verdict::kRefused && unasked) waiting_.pop_back();
  return verdict;
}

// Who still wants numbers comes again, with another ticket.
void Unbuffered::ForgetAsked() {
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(asked_));
  asked_ = 0;
}

void Unbuffered::Fetch(Lock lock, BootMs now) {
  while (!waiting_.empty() && now - waiting_.front().since > kKeep) waiting_.pop_front();
  if (waiting_.empty()) return;
  gate_.Began(now);
  asked_drops_ = drops_;
  asked_ = 0;
  int64_t size = 0;
  for (const Ticket& ticket : waiting_) {
    if (asked_ > 0 && size + ticket.count > kCountMax) break;
    size += ticket.count;
    ++asked_;
  }
  const std::shared_ptr<const TagDefinition> tag = tag_;
  lock.unlock();
  parts_.source.Take(*tag, size, [weak = weak_from_this()](const Result<Range>& taken) {
    if (const auto self = weak.lock(); self && !self->sentinel_.InChild()) self->OnTaken(taken);
  });
}

void Unbuffered::OnTaken(const Result<Range>& taken) {
  const BootMs now = parts_.clock.Boot();
  Lock lock(mutex_);
  ThrowAwayOld(now);
  if (const Status kept = KeepLocked(taken, now); kept.ok()) {
    gate_.Succeeded();
  } else {
    ++counts_.failures;
    gate_.Failed(kept, now);
    ForgetAsked();
  }
  const bool more = !closed_ && !waiting_.empty() && gate_.open(now);
  if (more) {
    Fetch(std::move(lock), now);
  } else {
    lock.unlock();
  }
  if (parts_.news) parts_.news();
}

Status Unbuffered::KeepLocked(const Result<Range>& taken, BootMs now) {
  if (!taken.ok()) return taken.status();
  const Range range = taken.value();
  if (range.empty() || range.begin < end_) {
    return Corrupt("the source gave numbers that had been given before");
  }
  end_ = range.end;
  ++counts_.ranges;
  if (closed_ || asked_drops_ != drops_) {
    counts_.wasted += range.size();
    return Corrupt("the tag's numbers were dropped meanwhile");
  }
  CutUp(range, now);
  return {};
}

// Rules 2 and 3.
void Unbuffered::CutUp(Range range, BootMs now) {
  for (; asked_ > 0 && !range.empty(); --asked_) {
    const Ticket ticket = waiting_.front();
    const int64_t count = std::min(ticket.count, range.size());
    portions_.emplace(ticket.number, Portion{{range.begin, range.begin + count}, now});
    range.begin += count;
    given_ += count;
    waiting_.pop_front();
  }
  counts_.wasted += range.size();
}

void Unbuffered::ThrowAwayOld(BootMs now) {
  while (!portions_.empty() && now - portions_.begin()->second.since > kKeep) {
    counts_.wasted += portions_.begin()->second.range.size();
    portions_.erase(portions_.begin());
  }
}

void Unbuffered::Tick(BootMs now) {
  if (sentinel_.InChild()) return;
  Lock lock(mutex_);
  pace_.Note(given_, now);
  ThrowAwayOld(now);
  if (!closed_ && !waiting_.empty() && gate_.open(now)) Fetch(std::move(lock), now);
}

void Unbuffered::Adjust(const TagDefinition& tag) {
  const Lock lock(mutex_);
  if (tag.start.value_or(1) > tag_->start.value_or(1)) DropLocked();
  tag_ = std::make_shared<const TagDefinition>(tag);
}

void Unbuffered::Drop(const std::string& why) {
  const BootMs now = parts_.clock.Boot();
  const Lock lock(mutex_);
  DropLocked();
  if (!gate_.in_flight()) gate_.Failed(Corrupt(why), now);
}

void Unbuffered::DropLocked() {
  for (const auto& [ticket, portion] : portions_) counts_.wasted += portion.range.size();
  portions_.clear();
  ++drops_;
}

void Unbuffered::Close() {
  if (sentinel_.InChild()) return;
  const Lock lock(mutex_);
  if (std::exchange(closed_, true)) return;
  for (const auto& [ticket, portion] : portions_) counts_.wasted += portion.range.size();
  portions_.clear();
  waiting_.clear();
  asked_ = 0;
}

void Unbuffered::Abandon() {
  if (sentinel_.InChild()) return;
  {
    const Lock lock(mutex_);
    abandoned_ = true;
  }
  Close();
}

bool Unbuffered::settled() const {
  const Lock lock(mutex_);
  return closed_ && !gate_.in_flight();
}

SegmentStatus Unbuffered::status() const {
  const Lock lock(mutex_);
  SegmentStatus status = counts_;
  status.per_second = pace_.per_second();
  if (!gate_.trouble().ok()) status.trouble = gate_.trouble().ToString();
  return status;
}

}  // namespace firn
