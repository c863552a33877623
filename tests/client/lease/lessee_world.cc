#include "tests/client/lease/lessee_world.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace firn {
namespace {

constexpr Milliseconds kFirstWindow{15'000}, kWindow{60'000}, kSkewMax{10'000};

}  // namespace

LeaseOutcome LeaseServerModel::Answer(const LeaseRequest& ask, WallMs now) {
  if (ask.kind != LeaseRequest::Kind::kRelease && std::chrono::abs(ask.clock - now) > kSkewMax) {
    return {.kind = LeaseOutcome::Kind::kRefused, .status = Invalid("the clock is wrong")};
  }
  if (ask.kind == LeaseRequest::Kind::kGrant) return Grant(ask, now);
  return ask.kind == LeaseRequest::Kind::kRenew ? Renew(ask, now) : Release(ask);
}

LeaseOutcome LeaseServerModel::Grant(const LeaseRequest& ask, WallMs now) {
  for (auto& [name, lease] : leases_) {
    if (lease.token != ask.token) continue;
    if (lease.gone || !lease.turn.empty()) return {.kind = LeaseOutcome::Kind::kGone};
    return Promise(name, lease);
  }
  for (uint32_t i = 0; i < kSlots; ++i) {
    Slot& slot = slots_[i];
    if (slot.bound > now && fault_ != LeaseFault::kIgnoresBounds) continue;
    const std::string name = "lease " + std::to_string(entropy_.Next());
    Lease lease{.token = ask.token, .slot = i, .from = std::max(slot.bound, now)};
    if (fault_ == LeaseFault::kIgnoresBounds) lease.from = now;
    lease.bound = lease.from + kFirstWindow;
    lease.promised = lease.bound;
    slot = {lease.bound, name};
    return Promise(name, leases_[name] = std::move(lease));
  }
  return {.kind = LeaseOutcome::Kind::kRefused, .status = Unavailable("no machine id is free")};
}

LeaseOutcome LeaseServerModel::Renew(const LeaseRequest& ask, WallMs now) {
  const auto found = leases_.find(ask.lease);
  if (found == leases_.end()) return {.kind = LeaseOutcome::Kind::kUnknown};
  Lease& lease = found->second;
  if (lease.gone) return {.kind = LeaseOutcome::Kind::kGone};
  if (ask.turn == lease.turn) return Promise(ask.lease, lease);
  if (ask.acknowledged != lease.turn || ask.until != layout_.TickAt(lease.promised)) {
    lease.gone = true;
    return {.kind = LeaseOutcome::Kind::kGone};
  }
  lease.turn = ask.turn;
  Slot& slot = slots_[lease.slot];
  if (slot.holder == ask.lease) {
    slot.bound = lease.bound = std::max(lease.bound, now + kWindow);
  } else if (fault_ == LeaseFault::kExtendsForeign) {
    lease.bound = now + kWindow;
  }
  lease.promised = std::max(lease.promised, std::min(lease.bound, now + ask.ahead));
  return Promise(ask.lease, lease);
}

LeaseOutcome LeaseServerModel::Release(const LeaseRequest& ask) {
  const auto found = leases_.find(ask.lease);
  if (found == leases_.end()) return {.kind = LeaseOutcome::Kind::kUnknown};
  Lease& lease = found->second;
  const bool follows =
      ask.acknowledged == lease.turn && ask.until == layout_.TickAt(lease.promised);
  const bool repeats = !ask.turn.empty() && ask.turn == lease.turn;
  if (lease.gone || !(follows || repeats)) {
    lease.gone = true;
    return {.kind = LeaseOutcome::Kind::kGone};
  }
  Free(ask.lease, lease, std::max(layout_.StartOf(*ask.used + 1), lease.from));
  leases_.erase(found);
  return {.kind = LeaseOutcome::Kind::kReleased};
}

LeaseOutcome LeaseServerModel::Promise(const std::string& name, Lease& lease) const {
  LeaseGrant terms;
  terms.lease = name;
  terms.server = "127.0.0.1:7609";
  terms.machine = MachineId(lease.slot);
  terms.base_bits = layout_.BaseBits(terms.machine, 0);
  terms.sequence_count = layout_.ids_per_tick();
  terms.from = layout_.FirstTickFrom(lease.from);
  terms.until = layout_.TickAt(lease.promised);
  terms.renew_in = Milliseconds(5'000);
  return {.kind = LeaseOutcome::Kind::kTerms, .terms = std::move(terms)};
}

void LeaseServerModel::Free(const std::string& name, const Lease& lease, WallMs bound) {
  Slot& slot = slots_[lease.slot];
  if (slot.holder == name && bound < slot.bound) slot = {bound, {}};
}

void LeaseServerModel::Expire(WallMs now) {
  std::erase_if(leases_, [&](const auto& entry) {
    const auto& [name, lease] = entry;
    if (fault_ == LeaseFault::kForgetsPromises && lease.promised > now + Milliseconds(5'000)) {
      Free(name, lease, now);
      return true;
    }
    if (lease.promised > now) return false;
    Free(name, lease, lease.promised);
    return true;
  });
}

void LeaseServerModel::FindForeign(WallMs now) {
  for (auto& [name, lease] : leases_) {
    Slot& slot = slots_[lease.slot];
    if (lease.gone || slot.holder != name || slot.bound > now + kWindow) continue;
    slot = {slot.bound, "another"};
    lease.gone = fault_ != LeaseFault::kExtendsForeign;
    return;
  }
}

// A lessee with its own clocks.
class LesseeWorld::Program final {
 public:
  Program(WallMs wall, uint64_t seed, Outcome& outcome)
      : seen(outcome),
        clock(wall),
        entropy(seed),
        lessee({.name = "a program",
                .on_lost =
                    [this](const LeaseLoss& loss) {
                      ++(loss.kind == LeaseLoss::Kind::kGone ? seen.gone : seen.expired);
                    }},
               ids, entropy, sent, nullptr) {}

  class Sent final : public LeaseTransport {
   public:
    void Send(uint64_t number, const LeaseRequest& ask, std::shared_ptr<LeaseOutcomes>) override {
      asks.push_back({number, ask});
    }
    std::deque<std::pair<uint64_t, LeaseRequest>> asks;
  };

  Outcome& seen;
  VirtualClock clock;
  SeededEntropy entropy;
  LeasedIds ids{clock, entropy, /*use_cycles=*/false};
  const std::shared_ptr<Sent> sent = std::make_shared<Sent>();
  std::deque<std::pair<uint64_t, LeaseOutcome>> replies;
  Lessee lessee;
  WallMs paused_until;
  int64_t last_time = 0;
};

LesseeWorld::LesseeWorld(uint64_t seed, LeaseFault fault)
    : entropy_(seed), server_(fault, entropy_) {
  for (int i = 0; i < 4; ++i) {
    const Milliseconds off =
        i == 3 ? kAnHour : Milliseconds(static_cast<int64_t>(entropy_.Below(8'000)));
    programs_.push_back(
        std::make_unique<Program>(Once(2) ? now_ + off : now_ - off, entropy_.Next(), outcome_));
  }
}

LesseeWorld::~LesseeWorld() = default;

void LesseeWorld::Step() {
  const Milliseconds passed(static_cast<int64_t>(1 + entropy_.Below(500)));
  now_ += passed;
  if (Once(300)) reachable_ = !reachable_;
  if (Once(2'000)) server_.Crash();
  if (Once(500)) server_.FindForeign(now_);
  if (Once(3)) server_.Expire(now_);
  for (auto& each : programs_) {
    Program& program = *each;
    program.clock.Advance(passed);
    if (Once(400)) {
      const auto step = static_cast<int64_t>(entropy_.Below(4 * 3'600'000));
      program.clock.StepWall(Milliseconds(Once(2) ? step : -step));
    }
    if (Once(300)) program.clock.StepWall(now_ - program.clock.Wall());
    if (Once(200))
      program.paused_until = now_ + Milliseconds(static_cast<int64_t>(entropy_.Below(90'000)));
    if (now_ < program.paused_until) continue;
    if (Once(2)) TakeIds(program);
    Deliver(program);
    TakeIds(program);
    program.lessee.Tick(program.clock.Read());
    TakeIds(program);
    if (Once(2'000)) {
      program.lessee.Stop(program.clock.Read());
      program.lessee.Tick(program.clock.Read());
    }
    if (program.lessee.stopped()) {
      ++outcome_.released;
      each = std::make_unique<Program>(now_, entropy_.Next(), outcome_);
    }
  }
}

// Delivers requests and answers, of which some are lost, duplicated or delayed.
void LesseeWorld::Deliver(Program& program) {
  auto& asks = program.sent->asks;
  while (!asks.empty() && !Once(3)) {
    const auto [number, ask] = asks.front();
    asks.pop_front();
    if (!reachable_ || Once(5)) continue;
    LeaseOutcome reply = server_.Answer(ask, now_);
    if (Once(8)) reply = server_.Answer(ask, now_);
    if (Once(5)) continue;
    program.replies.emplace_back(number, std::move(reply));
  }
  auto& replies = program.replies;
  while (!replies.empty() && !Once(3)) {
    const auto [number, reply] = replies.front();
    replies.pop_front();
    if (reply.kind == LeaseOutcome::Kind::kTerms) ++outcome_.grants;
    program.lessee.OnReply(number, reply, program.clock.Read());
  }
}

void LesseeWorld::TakeIds(Program& program) {
  for (int i = 0; i < 3; ++i) {
    std::chrono::microseconds wait{0};
    const Result<int64_t> id = program.ids.TryNext(&wait);
    if (!id.ok()) return;
    const int64_t value = id.value_or(0);
    const int64_t time = value >> Layout::Firn().time().shift;
    ++outcome_.ids;
    if (!issued_.insert(value).second) ++outcome_.duplicates;
    if (time < program.last_time) ++outcome_.descents;
    program.last_time = time;
  }
}

}  // namespace firn
