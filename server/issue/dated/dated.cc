#include "server/issue/dated/dated.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"

namespace firn {
namespace {

constexpr int kSwitchesMax = 64;  // in one call; more ranges than that, and it has to wait
constexpr Milliseconds kRetryMost = std::chrono::hours(24);

// How many numbers are left when the next range is fetched.
int64_t MarkOf(const Range& range, int64_t prefetch_at) {
  const int64_t used = range.size() / 100 * prefetch_at + range.size() % 100 * prefetch_at / 100;
  return std::max<int64_t>(1, range.size() - used);
}

}  // namespace

Result<std::shared_ptr<Dated>> Dated::Make(const TagDefinition& tag, RangedParts parts,
                                           const RegistryTime& time) {
  if (!tag.Dated()) return Invalid("tag '" + tag.name + "' is no dated tag");
  FIRN_ASSIGN(TimeZone zone, TimeZone::Load(tag.zone));
  return std::shared_ptr<Dated>(new Dated(tag, std::move(parts), time, std::move(zone)));
}

Dated::Dated(const TagDefinition& tag, RangedParts parts, const RegistryTime& time, TimeZone zone)
    : parts_(std::move(parts)),
      time_(time),
      zone_(std::move(zone)),
      numbers_(*tag.Dated()),
      tag_(std::make_shared<const TagDefinition>(tag)),
      policy_(tag),
      gate_(parts_.entropy) {}

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
  if (closed_) return call.Refuse(ClosedLocked());
  asked_at_ = now;
  if (call.runs().empty()) call.drops = drops_;
  if (call.drops != drops_) {
    counts_.wasted += call.runs().count();
    return call.Refuse(Dropped());
  }
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
    NoteShortageLocked(call);
    Fetch(std::move(lock), now);
    lock = Lock(mutex_);  // and the answer may be there already
  }
  if (IsUsedUpLocked(now)) return call.Refuse(UsedUpLocked(now));
  const Verdict verdict = gate_.Answer(call, now);
  if (verdict == Verdict::kWait && !asks) NoteShortageLocked(call);
  return verdict;
}

// Counts each call that waits once for each range that could have served it.
void Dated::NoteShortageLocked(IssueCall& call) {
  if (call.ticket > fetches_) return;
  call.ticket = fetches_ + 1;
  shortage_ = std::min(shortage_, kRangeEnd - call.missing()) + call.missing();
}

std::optional<Refusal> Dated::WhyNot() const {
  if (sentinel_.InChild()) return ClosedHere();
  const BootMs now = parts_.clock.Boot();
  const Lock lock(mutex_);
  if (closed_) return ClosedLocked();
  for (const auto* held : {&current_, &next_}) {
    if (*held && !(*held)->range.empty() && MayGiveLocked(**held, now)) return std::nullopt;
  }
  if (IsUsedUpLocked(now)) return UsedUpLocked(now);
  return gate_.WhyNot(now);
}

// --- what is in memory ---------------------------------------------------------------------------

// Rules 2 and 4.
bool Dated::MayGiveLocked(const Held& held, BootMs now) const {
  const std::optional<WallMs> time = time_.At(now);
  if (!time) return false;
  return *time < held.end || (*time < held.end + GraceLocked() && IsAwayLocked(now));
}

// True when the current range has a number that may be given now.
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
  mark_ = MarkOf(current_->range, tag_->prefetch_at);
  loaded_at_ = now;
}

// Of the current range, which is ready.
Range Dated::TakeLocked(int64_t count, BootMs now) {
  Range& left = current_->range;
  const Range taken{left.begin, left.begin + std::min(count, left.size())};
  left.begin = taken.end;
  given_ += taken.size();
  if (left.empty() && loaded_at_) policy_.UsedUpIn(now - *loaded_at_);
  return taken;
}

// The source does not answer: what it says to a question is not that it is away.
bool Dated::IsAwayLocked(BootMs now) const {
  const Code code = gate_.trouble().code();
  if (!gate_.trouble().ok()) return code == Code::kUnavailable || code == Code::kUnknown;
  return gate_.WhyNot(now).has_value();
}

// Rule 3. A period that goes on in its grace is asked about all the time.
bool Dated::WantsNextLocked(BootMs now) const {
  const std::optional<WallMs> time = time_.At(now);
  if (closed_ || !time || !gate_.open(now) || IsUsedUpLocked(now)) return false;
  const bool in_demand = asked_at_ && now - *asked_at_ < std::chrono::minutes(tag_->hold_minutes);
  if (!current_) return in_demand && !next_;
  if (*time >= current_->end) return !next_ || *time >= next_->end;
  return !next_ && current_->range.size() <= mark_;
}

// --- a period that is used up --------------------------------------------------------------------

bool Dated::IsUsedUpLocked(BootMs now) const {
  const std::optional<WallMs> time = time_.At(now);
  return used_up_until_ && time && *time < *used_up_until_;
}

Refusal Dated::UsedUpLocked(BootMs now) const {
  return Until(*used_up_until_ - *time_.At(now),
               Cat("the numbers of this ", PeriodName(tag_->period), " are used up here"));
}

Refusal Dated::Until(Milliseconds left, std::string why) {
  return {Reason::kOverloaded, std::move(why),
          static_cast<int32_t>(std::min(left, kRetryMost).count()), true};
}

// That of the numbers seen last, or the clock's if that is later.
int64_t Dated::PeriodLocked(WallMs time) const {
  const int64_t seen = end_ > 1 ? numbers_.PeriodOf(end_ - 1) : 0;
  return std::max(seen, numbers_.PeriodAt(time, zone_));
}

void Dated::NoteUsedUpLocked(BootMs now) {
  const std::optional<WallMs> time = time_.At(now);
  if (time) used_up_until_ = numbers_.EndOf(PeriodLocked(*time), *time, zone_);
}

// Rule 7: more than this server can give in the period, whatever its source still has.
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

// What kept numbers from coming is over: the first call of the next period is not to wait.
void Dated::ForgetUsedUpLocked(BootMs now) {
  if (!used_up_until_ || IsUsedUpLocked(now) || gate_.in_flight()) return;
  used_up_until_.reset();
  gate_.Succeeded();
}

// --- what comes in -------------------------------------------------------------------------------

void Dated::Fetch(Lock lock, BootMs now) {
  gate_.Began(now);
  ++fetches_;
  asked_drops_ = drops_;
  const int64_t size = policy_.SizeFor(std::exchange(shortage_, 0));
  const std::shared_ptr<const TagDefinition> tag = tag_;
  lock.unlock();
  parts_.source.Take(*tag, size, [weak = weak_from_this()](const Result<Range>& taken) {
    if (const auto self = weak.lock(); self && !self->sentinel_.InChild()) self->OnTaken(taken);
  });
}

void Dated::OnTaken(const Result<Range>& taken) {
  const BootMs now = parts_.clock.Boot();
  Lock lock(mutex_);
  if (const Status kept = KeepLocked(taken, now); kept.ok()) {
    used_up_until_.reset();
    gate_.Succeeded();
  } else {
    ++counts_.failures;
    const bool used_up = kept.code() == Code::kExhausted;
    if (used_up) NoteUsedUpLocked(now);
    gate_.Failed(used_up ? Conflict(kept.message()) : kept, now);
  }
  if (stopped_) return GiveBack(std::move(lock));
  lock.unlock();
  if (parts_.news) parts_.news();
}

Status Dated::KeepLocked(const Result<Range>& taken, BootMs now) {
  if (!taken.ok()) return taken.status();
  const Range range = taken.value();
  const std::optional<WallMs> time = time_.At(now);
  if (range.empty() || range.begin < end_) {
    return Corrupt("the source gave numbers that had been given before");
  }
  const int64_t period = numbers_.PeriodOf(range.begin);
  const bool whole = numbers_.IsPeriod(period) && range.begin >= numbers_.First(period) &&
                     range.end <= numbers_.End(period);
  if (!whole || !time) return Corrupt("the source gave numbers that are of no period");
  end_ = range.end;
  ++counts_.ranges;
  if (asked_drops_ != drops_) {
    counts_.wasted += range.size();
    return Corrupt("the tag's numbers were dropped meanwhile");
  }
  if (next_) WasteLocked(next_);  // of a period that is over
  next_ = Held{range, numbers_.EndOf(period, *time, zone_)};
  // It came too late, and nobody knows by how much: so no grace is left of its period.
  if (next_->end <= *time) WasteLocked(next_);
  return {};
}

void Dated::Tick(BootMs now) {
  if (sentinel_.InChild()) return;
  Lock lock(mutex_);
  pace_.Note(given_, now);
  ReadyLocked(now);
  if (WantsNextLocked(now)) Fetch(std::move(lock), now);
}

// Somebody else may have given what lies below the tag's new start.
void Dated::Adjust(const TagDefinition& tag) {
  const Lock lock(mutex_);
  const int64_t start = tag.start.value_or(1);
  if (start > tag_->start.value_or(1) && !closed_) {
    for (auto* held : {&current_, &next_}) {
      if (!*held) continue;
      Range& range = (*held)->range;
      const int64_t begin = std::clamp(start, range.begin, range.end);
      counts_.wasted += begin - std::exchange(range.begin, begin);
    }
    ++drops_;
  }
  tag_ = std::make_shared<const TagDefinition>(tag);
  policy_.Adjust(tag);
}

// --- its end -------------------------------------------------------------------------------------

void Dated::Drop(const std::string& why) {
  const BootMs now = parts_.clock.Boot();
  const Lock lock(mutex_);
  for (auto* held : {&current_, &next_}) {
    if (*held) WasteLocked(*held);
  }
  loaded_at_.reset();
  ++drops_;
  if (!gate_.in_flight()) gate_.Failed(Corrupt(why), now);
}

void Dated::Close() {
  if (sentinel_.InChild()) return;
  const Lock lock(mutex_);
  closed_ = true;
}

void Dated::Stop() {
  Close();
  if (sentinel_.InChild()) return;
  Lock lock(mutex_);
  if (std::exchange(stopped_, true) || gate_.in_flight()) return;
  GiveBack(std::move(lock));
}

void Dated::Abandon() {
  if (sentinel_.InChild()) return;
  {
    const Lock lock(mutex_);
    abandoned_ = true;
  }
  Stop();
}

// Once, when nothing is in flight any more: the tail that ends where the last range did.
void Dated::GiveBack(Lock lock) {
  const Range current = current_ ? current_->range : Range{};
  Range tail = next_ ? next_->range : current;
  if (next_ && !current.empty() && current.end == tail.begin) tail.begin = current.begin;
  if (abandoned_) tail = {};
  counts_.wasted += SupplyLocked() - tail.size();
  current_.reset();
  next_.reset();
  if (tail.empty()) return;
  giving_back_ = true;
  const std::shared_ptr<const TagDefinition> tag = tag_;
  lock.unlock();
  parts_.source.GiveBack(*tag, tail, [weak = weak_from_this(), tail](const Status& status) {
    if (const auto self = weak.lock(); self && !self->sentinel_.InChild())
      self->OnGivenBack(status, tail);
  });
}

void Dated::OnGivenBack(const Status& status, Range tail) {
  const Lock lock(mutex_);
  giving_back_ = false;
  if (!status.ok()) counts_.wasted += tail.size();
}

bool Dated::settled() const {
  const Lock lock(mutex_);
  return stopped_ && !gate_.in_flight() && !giving_back_;
}

int64_t Dated::SupplyLocked() const {
  return (current_ ? current_->range.size() : 0) + (next_ ? next_->range.size() : 0);
}

SegmentStatus Dated::status() const {
  const Lock lock(mutex_);
  SegmentStatus status = counts_;
  status.supply = SupplyLocked();
  status.step = policy_.step();
  status.per_second = pace_.per_second();
  status.supply_seconds = pace_.SecondsFor(status.supply);
  if (!gate_.trouble().ok()) status.trouble = gate_.trouble().ToString();
  return status;
}

}  // namespace firn
