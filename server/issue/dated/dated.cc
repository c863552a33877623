#include "server/issue/dated/dated.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"

namespace firn {
namespace {

constexpr int kSwitchesMax = 64;  // per call; a call that needs more ranges has to wait
constexpr Milliseconds kRetryMost = std::chrono::hours(24);

}  // namespace

Result<std::shared_ptr<Dated>> Dated::Make(const TagDefinition& tag, RangedParts parts,
                                           const RegistryTime& time) {
  if (!tag.Dated()) return Invalid("tag '" + tag.name + "' is not a dated tag");
  FIRN_ASSIGN(TimeZone zone, TimeZone::Load(tag.zone));
  return std::shared_ptr<Dated>(new Dated(tag, std::move(parts), time, std::move(zone)));
}

Dated::Dated(const TagDefinition& tag, RangedParts parts, const RegistryTime& time, TimeZone zone)
    : RangedStrategy(tag, std::move(parts)),
      time_(time),
      zone_(std::move(zone)),
      numbers_(*tag.Dated()) {}

// --- calls ---------------------------------------------------------------------------------------

bool Dated::TryOne(Method, int64_t* id) {
  if (sentinel_.InChild()) return false;
  const BootMs now = parts_.clock.Boot();
  Lock lock(mutex_);
  asked_at_ = now;
  if (!ReadyLocked(now)) return false;
  *id = TakeLocked(1, now).begin;
  if (WantsNextLocked(now)) Fetch(std::move(lock), now);
  return true;
}

Verdict Dated::Issue(IssueCall& call) {
  if (sentinel_.InChild()) return call.Refuse(ClosedHere());
  const BootMs now = parts_.clock.Boot();
  Lock lock(mutex_);
  if (closed_) return call.Refuse(ClosedNowLocked());
  asked_at_ = now;
  if (IsStale(call)) return RefuseStale(call);
  if (auto refusal = TooManyLocked(call, now)) return call.Refuse(*std::move(refusal));
  for (int i = 0; i < kSwitchesMax && call.missing() > 0 && ReadyLocked(now); ++i) {
    const Range taken = TakeLocked(call.missing(), now);
    call.Add({taken.begin, taken.size(), 1});
  }
  if (call.missing() > 0) return FindNone(call, now, std::move(lock));
  if (WantsNextLocked(now)) Fetch(std::move(lock), now);
  return Verdict::kIssued;
}

Verdict Dated::FindNone(IssueCall& call, BootMs now, Lock lock) {
  const bool asks = gate_.open(now);
  if (asks) {
    policy_.Waits(call);
    Fetch(std::move(lock), now);
    lock = Lock(mutex_);  // the answer may have arrived
  }
  const Verdict verdict =
      IsUsedUpLocked(now) ? call.Refuse(UsedUpLocked(now)) : gate_.Answer(call, now);
  if (verdict == Verdict::kWait && !asks) policy_.Waits(call);
  return verdict;
}

std::optional<Refusal> Dated::WhyNotLocked(BootMs now) const {
  for (const auto* held : {&current_, &next_}) {
    if (*held && !(*held)->range.empty() && MayGiveLocked(**held, now)) return std::nullopt;
  }
  if (IsUsedUpLocked(now)) return UsedUpLocked(now);
  return gate_.WhyNot(now);
}

// --- numbers in memory ---------------------------------------------------------------------------

// Rules 2 and 4.
bool Dated::MayGiveLocked(const Held& held, BootMs now) const {
  const std::optional<WallMs> time = time_.At(now);
  if (!time) return false;
  return *time < held.end || (*time < held.end + GraceLocked() && IsAwayLocked(now));
}

// Returns true if the current range has a number that may be issued now.
bool Dated::ReadyLocked(BootMs now) {
  const std::optional<WallMs> time = time_.At(now);
  if (closed_ || !time) return false;
  ForgetUsedUpLocked(now);
  const bool later = current_ && next_ && next_->end > current_->end;
  if (current_ && *time >= current_->end + (later ? Milliseconds(0) : GraceLocked())) {
    WasteLocked(current_);
    loaded_at_.reset();
  }
  if (next_ && *time >= next_->end + GraceLocked()) WasteLocked(next_);
  if (next_ && (!current_ || current_->range.empty())) SwitchLocked(now);
  return current_ && !current_->range.empty() && MayGiveLocked(*current_, now);
}

void Dated::WasteLocked(std::optional<Held>& held) {
  counts_.wasted += held->range.size();
  held.reset();
}

void Dated::SwitchLocked(BootMs now) {
  current_ = std::exchange(next_, std::nullopt);
  mark_ = policy_.MarkOf(current_->range);
  loaded_at_ = now;
}

// Returns the last numbers of a refused call to the current range, unless other calls have taken
// the numbers after them. The call's other numbers are wasted.
int64_t Dated::TakeBackLocked(const Runs& runs) {
  const IdRun& last = runs[runs.size() - 1];
  if (!current_ || last.first + last.count != current_->range.begin) return runs.count();
  current_->range.begin = last.first;
  return runs.count() - last.count;
}

int64_t Dated::NextLocked() const {
  for (const auto* held : {&current_, &next_}) {
    if (*held && !(*held)->range.empty()) return (*held)->range.begin;
  }
  return end_;
}

// Takes from the current range, which must be ready.
Range Dated::TakeLocked(int64_t count, BootMs now) {
  Range& left = current_->range;
  const Range taken{left.begin, left.begin + std::min(count, left.size())};
  left.begin = taken.end;
  if (left.empty() && loaded_at_) policy_.UsedUpIn(now - *loaded_at_);
  return taken;
}

// Returns whether the source is unreachable or does not answer. An error that the source returns
// does not count.
bool Dated::IsAwayLocked(BootMs now) const {
  const Code code = gate_.trouble().code();
  if (!gate_.trouble().ok()) return code == Code::kUnavailable || code == Code::kUnknown;
  return gate_.WhyNot(now).has_value();
}

// Rule 3. Once the current period is over, a range of the new period is fetched, even while numbers
// of the old one are issued in its grace period.
bool Dated::WantsNextLocked(BootMs now) const {
  const std::optional<WallMs> time = time_.At(now);
  if (closed_ || !time || !gate_.open(now) || IsUsedUpLocked(now)) return false;
  const bool in_demand = asked_at_ && now - *asked_at_ < std::chrono::minutes(tag_->hold_minutes);
  if (!current_) return in_demand && !next_;
  if (*time >= current_->end) return in_demand && (!next_ || *time >= next_->end);
  return !next_ && current_->range.size() <= mark_;
}

// --- a period that is used up --------------------------------------------------------------------

bool Dated::IsUsedUpLocked(BootMs now) const {
  const std::optional<WallMs> time = time_.At(now);
  return used_up_until_ && time && *time < *used_up_until_;
}

Refusal Dated::UsedUpLocked(BootMs now) const {
  return Until(*used_up_until_ - *time_.At(now),
               Cat("the numbers of this ", PeriodName(tag_->period), " are used up here; the next ",
                   PeriodName(tag_->period), " has new ones, a tag with more digits has more"));
}

Refusal Dated::Until(Milliseconds left, std::string why) {
  return {Reason::kOverloaded, std::move(why),
          static_cast<int32_t>(std::min(left, kRetryMost).count()), true};
}

// Returns the period of the last range, or the registry clock's if that is later.
int64_t Dated::PeriodLocked(WallMs time) const {
  const int64_t seen = end_ > 1 ? numbers_.PeriodOf(end_ - 1) : 0;
  return std::max(seen, numbers_.PeriodAt(time, zone_));
}

void Dated::NoteUsedUpLocked(BootMs now) {
  const std::optional<WallMs> time = time_.At(now);
  if (time) used_up_until_ = numbers_.EndOf(PeriodLocked(*time), *time, zone_);
}

// Rule 6. Refuses a call for more numbers than this server can issue in the period, even if the
// source returned all that are left.
std::optional<Refusal> Dated::TooManyLocked(const IssueCall& call, BootMs now) const {
  const std::optional<WallMs> time = time_.At(now);
  const int64_t supply = SupplyLocked(), wanted = call.missing();
  if (!time || !call.runs().empty() || wanted <= std::max<int64_t>(supply, 1)) return std::nullopt;
  const int64_t period = PeriodLocked(*time);
  const int64_t first = numbers_.First(period), end = numbers_.End(period);
  const int64_t left = end - std::max(first, end_ - supply);
  if (wanted <= left) return std::nullopt;
  const std::string_view name = PeriodName(tag_->period);
  if (wanted > end - first) {
    return Refusal{Reason::kBadRequest,
                   Cat("count is ", wanted, ", and a ", name, " has ", end - first, " numbers")};
  }
  return Until(numbers_.EndOf(period, *time, zone_) - *time,
               Cat("this ", name, " has ", left, " numbers left here, fewer than the ", wanted,
                   " that are asked for"));
}

// Once a new period has begun, its first call must not wait for the backoff of the old one.
void Dated::ForgetUsedUpLocked(BootMs now) {
  if (!used_up_until_ || IsUsedUpLocked(now) || gate_.in_flight()) return;
  used_up_until_.reset();
  gate_.Succeeded();
}

// --- ranges that arrive --------------------------------------------------------------------------

bool Dated::IsRange(Range range) const {
  const int64_t period = numbers_.PeriodOf(range.begin);
  return numbers_.IsPeriod(period) && range.begin >= numbers_.First(period) &&
         range.end <= numbers_.End(period);
}

Status Dated::KeepLocked(Range range, BootMs now) {
  const std::optional<WallMs> time = time_.At(now);
  if (next_) WasteLocked(next_);  // its period is over
  if (!time) {
    counts_.wasted += range.size();
    return Corrupt("the source gave numbers before the registry's time was known");
  }
  next_ = Held{range, numbers_.EndOf(numbers_.PeriodOf(range.begin), *time, zone_)};
  // It is unknown how late the range is, so a period that is over gets no grace.
  used_up_until_.reset();
  if (next_->end > *time) return {};
  WasteLocked(next_);
  return Conflict("the numbers came after the end of their period");
}

// kExhausted becomes kConflict, so that the request is repeated: other servers may give numbers
// back.
Status Dated::FailedLocked(Status why, BootMs now) {
  if (why.code() != Code::kExhausted) return why;
  NoteUsedUpLocked(now);
  return Conflict(why.message());
}

bool Dated::TickLocked(BootMs now) {
  ReadyLocked(now);
  return WantsNextLocked(now);
}

int64_t Dated::TrimLocked(int64_t start, BootMs) {
  int64_t below = 0;
  for (auto* held : {&current_, &next_}) {
    if (!*held) continue;
    Range& range = (*held)->range;
    const int64_t begin = std::clamp(start, range.begin, range.end);
    below += begin - std::exchange(range.begin, begin);
  }
  return below;
}

std::vector<Range> Dated::EmptyLocked() {
  std::vector<Range> ranges;
  for (auto* held : {&current_, &next_}) {
    if (*held) ranges.push_back((*held)->range);
    held->reset();
  }
  loaded_at_.reset();
  return ranges;
}

int64_t Dated::SupplyLocked() const {
  return (current_ ? current_->range.size() : 0) + (next_ ? next_->range.size() : 0);
}

}  // namespace firn
