#include "server/issue/snowflake/snowflake.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <utility>

#include "common/base/cat.h"

namespace firn {
namespace {

// Claims last for at least seconds, so a call rarely finds more than one closed sequencer. After
// this many it is refused.
constexpr int kClosedMax = 8;
constexpr int32_t kNotReadyRetryMs = 1'000;
constexpr int32_t kClockRetryMs = 100;
// The keeper extends a late grant as soon as its thread runs.
constexpr std::chrono::milliseconds kGrantRetry{10};

// Returns the number of ids in the ticks that fit into `length`, of at least one tick. The result
// saturates.
int64_t IdsIn(Milliseconds length, const Layout& layout) {
  const auto per_tick = static_cast<int64_t>(layout.ids_per_tick());
  const int64_t ticks = std::max<int64_t>(1, length.count() / layout.tick_ms());
  return per_tick * std::min(ticks, INT64_MAX / per_tick);
}

Refusal NoClaim() {
  return {Reason::kNotReady, "this server holds no machine id", kNotReadyRetryMs, true};
}

Refusal ClaimHasEnded(const Claim& claim) {
  return {Reason::kNotReady,
          Cat("the grant of machine id ", claim.machine().value(), " has ended: ", claim.end().why),
          kNotReadyRetryMs, true};
}

}  // namespace

struct Snowflake::ClaimSequence {
  std::shared_ptr<const Claim> claim;
  std::unique_ptr<Sequencer> sequencer;
  std::array<uint64_t, kMethods> base_bits;

  uint64_t BitsFor(Method method) const { return base_bits[static_cast<size_t>(method)]; }
};

Snowflake::Snowflake(TickSource& ticks, Entropy& entropy, SnowflakeOptions options)
    : ticks_(ticks),
      entropy_(entropy),
      layout_(ticks.layout()),
      sequencer_options_(options.sequencer),
      count_max_(IdsIn(options.runs_max, layout_)),
      tick_ids_(static_cast<int64_t>(layout_.ids_per_tick())),
      tick_time_(layout_.tick_ms()),
      line_(tick_ids_, tick_time_) {}

Snowflake::~Snowflake() { Close(); }

Status Snowflake::CheckLayout() const {
  const Field* method = layout_.Find(FieldKind::kMethod);
  if (method != nullptr && !method->Holds(kMethodFieldMax)) {
    return Invalid(Cat("the method field of layout ", layout_.text(), " is too narrow for 0 to ",
                       kMethodFieldMax));
  }
  return {};
}

Status Snowflake::CheckClaim(const Claim& claim) const {
  if (!(claim.layout() == layout_)) {
    return Invalid("the claim's layout is " + claim.layout().text() + ", but ids have " +
                   layout_.text());
  }
  if (claim.machine().value() >= layout_.machines()) {
    return Invalid(
        Cat("machine id ", claim.machine().value(), " does not fit into layout ", layout_.text()));
  }
  return CheckLayout();
}

Status Snowflake::Adopt(std::shared_ptr<const Claim> claim) {
  FIRN_TRY(CheckClaim(*claim));
  if (sentinel_.InChild()) return Unavailable("this process is a forked child");
  const std::lock_guard lock(mutex_);
  if (closed_) return Unavailable("the strategy is closed");
  if (sequences_.size() == kClaimsMax) return Exhausted("too many claims for one process");
  FIRN_ASSIGN(ForkCells::Cell * cell, cells_.Take());

  auto held = std::make_unique<ClaimSequence>();
  for (size_t i = 0; i < kMethods; ++i) {
    const uint64_t field = MethodField(static_cast<Method>(i));
    held->base_bits[i] = layout_.BaseBits(claim->machine(), field);
  }
  ticks_.RaiseTo(claim->first_tick());
  held->sequencer = MakeSequencer(sequencer_options_, claim, *cell, entropy_.Next());
  held->claim = std::move(claim);
  sequences_.push_back(std::move(held));
  ClaimSequence* before = current_.exchange(sequences_.back().get(), std::memory_order_release);
  if (before != nullptr) before->sequencer->Close();
  return {};
}

std::optional<Tick> Snowflake::CloseClaim() {
  if (sentinel_.InChild()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  current_.store(nullptr, std::memory_order_relaxed);  // relaxed: Close() below publishes it
  if (sequences_.empty()) return std::nullopt;
  return sequences_.back()->sequencer->Close();
}

std::optional<Tick> Snowflake::Last() const {
  if (sentinel_.InChild()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (sequences_.empty()) return std::nullopt;
  return sequences_.back()->sequencer->Last();
}

void Snowflake::Close() {
  if (sentinel_.InChild()) return;
  CloseClaim();
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

Snowflake::ClaimSequence* Snowflake::Held() const {
  return current_.load(std::memory_order_acquire);
}

bool Snowflake::TryOne(Method method, int64_t* id) {
  ClaimSequence* held = Held();
  if (held == nullptr) return false;
  const Tick now = ticks_.Current();
  if (now == TickSource::kStopped) return false;
  const uint64_t position = held->sequencer->TakeOne(now);
  if (position == Sequencer::kNone) return false;
  const int bits = layout_.sequence().width;
  const Tick tick(static_cast<int64_t>(position >> bits));
  *id = layout_.PackUnchecked(held->BitsFor(method), tick, position & layout_.sequence().max());
  return true;
}

bool Snowflake::TryRun(Method method, int64_t want, IdRun* run) {
  ClaimSequence* held = Held();
  if (held == nullptr) return false;
  const Tick now = ticks_.Current();
  if (now == TickSource::kStopped) return false;
  const Step step = held->sequencer->Take(now, static_cast<uint64_t>(want));
  if (step.kind != Step::Kind::kTaken) return false;
  *run = RunOf(*held, step, method);
  return true;
}

Verdict Snowflake::Issue(IssueCall& call) {
  const bool in_line = NeedsTicks(call);
  if (in_line && sentinel_.InChild()) return call.Refuse(NoClaim());
  std::optional<Refusal> no_place;
  int closed = 0;
  Tick now = ticks_.Current();
  while (call.missing() > 0) {
    ClaimSequence* held = Held();
    if (held == nullptr) return call.Refuse(NoClaim());
    if (now == TickSource::kStopped) return call.Refuse(ClockIsBehind());
    const bool begins = call.runs().empty() && call.place == nullptr;
    if (begins && !FitsInto(*held->claim, now, call.missing())) {
      return Answer(*held, {Step::Kind::kClaimEnds, now}, call);
    }
    if (in_line) no_place = line_.Join(call, TimeOf(now), BestFor(call, now));
    const Step step =
        in_line ? ServeLine(*held, now) : TakeFor(call.runs(), call.missing(), *held, now);
    if (in_line && line_.Finish(call)) return Verdict::kIssued;
    if (step.kind == Step::Kind::kTaken) {
      call.Add(RunOf(*held, step, call.method()));
    } else if (step.kind == Step::Kind::kLater) {
      const Tick fresh = ticks_.Refresh();
      if (fresh == now) return no_place ? call.Refuse(*no_place) : Answer(*held, step, call);
      now = fresh;
    } else if (step.kind != Step::Kind::kClosed || ++closed == kClosedMax) {
      return Answer(*held, step, call);
    }
  }
  return Verdict::kIssued;
}

// Returns the reason why the line got no more ids.
Step Snowflake::ServeLine(const ClaimSequence& held, Tick now) {
  Step step{Step::Kind::kLater, now + 1};
  line_.Serve(TimeOf(now), [&](const LinePlace& place) {
    step = TakeFor(place.runs, place.missing, held, now);
    return step.kind == Step::Kind::kTaken ? RunOf(held, step, place.method) : IdRun{.count = 0};
  });
  return step.kind == Step::Kind::kTaken ? Step{Step::Kind::kLater, now + 1} : step;
}

// If a batch continues under the claim of another machine id, it continues in a later tick, so that
// the ids of one call rise.
Step Snowflake::TakeFor(const Runs& runs, int64_t missing, const ClaimSequence& held,
                        Tick now) const {
  if (!runs.empty()) {
    const auto before = static_cast<uint64_t>(runs.runs().back().first);
    const Tick used(static_cast<int64_t>(layout_.time().In(before)));
    const bool moved = layout_.machine().In(before) != held.claim->machine().value();
    if (moved && now <= used) return {Step::Kind::kLater, used + 1};
  }
  return held.sequencer->Take(now, static_cast<uint64_t>(missing));
}

IdRun Snowflake::RunOf(const ClaimSequence& held, const Step& step, Method method) const {
  return {layout_.PackUnchecked(held.BitsFor(method), step.tick, step.first),
          static_cast<int64_t>(step.count), layout_.stride()};
}

// Returns whether a call for `count` ids can be served before the claim's end in the best case.
// Checked before the call takes ids, so that a call that cannot succeed wastes none.
bool Snowflake::FitsInto(const Claim& claim, Tick now, int64_t count) const {
  const int64_t ticks = (count - 1) / static_cast<int64_t>(layout_.ids_per_tick());
  return ticks == 0 || std::max(now, claim.first_tick()) + ticks < claim.end_tick();
}

Verdict Snowflake::Answer(const ClaimSequence& held, const Step& step, IssueCall& call) const {
  switch (step.kind) {
    case Step::Kind::kLater:
      return call.Wait(std::max(ticks_.Until(step.tick), line_.WaitOf(call)),
                       {Reason::kOverloaded, "the sequence is used up until the next tick",
                        static_cast<int32_t>(layout_.tick_ms()), true});
    case Step::Kind::kLayoutEnds:
      return call.Refuse(LayoutHasEnded());
    case Step::Kind::kClaimEnds:
      if (!held.claim->end().passes) return call.Refuse(ClaimHasEnded(*held.claim));
      return call.Wait(kGrantRetry, ClaimHasEnded(*held.claim));
    case Step::Kind::kTaken:
    case Step::Kind::kClosed:
      break;
  }
  return call.Refuse(NoClaim());
}

int64_t Snowflake::NextAtLeast() const {
  const ClaimSequence* const held = Held();
  const Tick now = ticks_.Current();
  if (held == nullptr || now == TickSource::kStopped) return 0;
  if (!layout_.time().Holds(static_cast<uint64_t>(now.count()))) return 0;
  return layout_.PackUnchecked(held->BitsFor(Method::kEmbedded), now, 0);
}

std::optional<Refusal> Snowflake::WhyNot() const {
  if (sentinel_.InChild()) return NoClaim();
  const std::lock_guard lock(mutex_);
  const ClaimSequence* held = current_.load(std::memory_order_relaxed);  // set under the mutex
  if (held == nullptr) return NoClaim();
  const Tick now = ticks_.Refresh();
  if (now == TickSource::kStopped) return ClockIsBehind();
  const Tick next = std::max({now, held->claim->first_tick(), held->sequencer->Last()});
  if (!layout_.time().Holds(static_cast<uint64_t>(next.count()))) return LayoutHasEnded();
  if (next >= held->claim->end_tick()) return ClaimHasEnded(*held->claim);
  return std::nullopt;
}

Refusal Snowflake::ClockIsBehind() const {
  return {Reason::kClock, Cat("the wall clock is ", ticks_.id_clock().Skew().count(), " ms behind"),
          kClockRetryMs, true};
}

Refusal Snowflake::LayoutHasEnded() const {
  return {Reason::kExhausted,
          "by this server's clock, the time field of layout " + layout_.text() +
              " has run out; correct the clock, or use a cluster with another layout",
          0, true};
}

}  // namespace firn
