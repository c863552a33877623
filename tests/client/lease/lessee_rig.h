#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "client/lease/lessee.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// A transport that records the requests; the test answers them.
class SentAsks final : public LeaseTransport {
 public:
  struct Sent {
    uint64_t number;
    LeaseRequest ask;
  };

  void Send(uint64_t number, const LeaseRequest& ask, std::shared_ptr<LeaseOutcomes>) override {
    all.push_back({number, ask});
  }

  std::vector<Sent> all;
};

// A lessee with virtual clocks.
class LesseeRig {
 public:
  explicit LesseeRig(WallMs wall = At("2026-11-26T12:00:00Z"))
      : LesseeRig({.name = "shop-1"}, wall) {}
  explicit LesseeRig(LeaseOptions options, WallMs wall = At("2026-11-26T12:00:00Z"))
      : clock_(wall),
        lessee_(Hear(std::move(options)), ids_, entropy_, transport_, /*replies=*/nullptr) {}

  // Lets time pass, with a Tick every 100 ms.
  void Pass(Milliseconds time) {
    for (; time > Milliseconds(0); time -= Milliseconds(100)) {
      clock_.Advance(std::min(time, Milliseconds(100)));
      Tick();
    }
  }
  void Tick() { lessee_.Tick(clock_.Read()); }

  // The newest request, which must be of `kind`.
  SentAsks::Sent Newest(LeaseRequest::Kind kind) const {
    for (auto sent = transport_->all.rbegin(); sent != transport_->all.rend(); ++sent) {
      if (sent->ask.kind == kind) return *sent;
    }
    ADD_FAILURE() << "no such request was sent";
    return {};
  }
  size_t sent(LeaseRequest::Kind kind) const {
    size_t count = 0;
    for (const auto& sent : transport_->all) count += sent.ask.kind == kind ? 1 : 0;
    return count;
  }

  // Returns terms as granted by a server with a correct clock.
  LeaseGrant Terms(uint32_t machine, WallMs from, WallMs until) const {
    LeaseGrant terms;
    terms.lease = "lease-" + std::to_string(machine);
    terms.server = "10.0.0." + std::to_string(machine) + ":7609";
    terms.layout = layout_;
    terms.machine = MachineId(machine);
    terms.base_bits = layout_.BaseBits(terms.machine, 0);
    terms.sequence_count = layout_.ids_per_tick();
    terms.from = layout_.FirstTickFrom(from);
    terms.until = layout_.TickAt(until);
    terms.renew_in = Milliseconds(20'000);
    return terms;
  }

  void Reply(const SentAsks::Sent& sent, LeaseOutcome reply) {
    lessee_.OnReply(sent.number, reply, clock_.Read());
  }
  void Reply(const SentAsks::Sent& sent, LeaseGrant terms) {
    Reply(sent, {.kind = LeaseOutcome::Kind::kTerms, .terms = std::move(terms)});
  }

  // Obtains a lease of `machine` from now on.
  LeaseGrant Hold(uint32_t machine = 7, Milliseconds length = Milliseconds(60'000)) {
    Tick();
    const LeaseGrant terms = Terms(machine, clock_.Wall(), clock_.Wall() + length);
    Reply(Newest(LeaseRequest::Kind::kGrant), terms);
    Tick();
    return terms;
  }

  Result<int64_t> TryNext() {
    std::chrono::microseconds wait{0};
    return ids_.TryNext(&wait);
  }
  // Returns the fields of the next id.
  IdFields Next() {
    const Result<int64_t> id = TryNext();
    EXPECT_TRUE(id.ok()) << id.status();
    return id.ok() ? layout_.Unpack(id.value_or(0)).value() : IdFields{};
  }
  // Takes ids of the current tick, and expects that they are new and rise.
  void TakeSome() {
    for (int i = 0; i < 3; ++i) {
      const Result<int64_t> id = TryNext();
      if (!id.ok()) return;
      const uint64_t order = static_cast<uint64_t>(id.value_or(0)) >> layout_.time().shift;
      EXPECT_GE(order, last_time_);
      last_time_ = order;
      EXPECT_TRUE(seen_.insert(id.value_or(0)).second) << "a duplicate";
    }
  }
  size_t taken() const { return seen_.size(); }

  // Returns whether the ids have woken the lessee's thread since the last call.
  bool TakeWoken() { return std::exchange(woken_, false); }

  const Layout& layout() const { return layout_; }
  VirtualClock& clock() { return clock_; }
  LeasedIds& ids() { return ids_; }
  Lessee& lessee() { return lessee_; }
  SentAsks& transport() { return *transport_; }
  const std::vector<LeaseLoss>& losses() const { return losses_; }
  const std::vector<Status>& refusals() const { return refusals_; }

 private:
  LeaseOptions Hear(LeaseOptions options) {
    options.on_lost = [this](const LeaseLoss& loss) { losses_.push_back(loss); };
    options.on_failure = [this](const Status& why) { refusals_.push_back(why); };
    return options;
  }

  const Layout layout_ = Layout::Firn();
  VirtualClock clock_;
  SeededEntropy entropy_{7};
  bool woken_ = false;
  LeasedIds ids_{clock_, entropy_, /*use_cycles=*/false, [this] { woken_ = true; }};
  std::vector<LeaseLoss> losses_;
  std::vector<Status> refusals_;
  std::set<int64_t> seen_;
  uint64_t last_time_ = 0;
  const std::shared_ptr<SentAsks> transport_ = std::make_shared<SentAsks>();
  Lessee lessee_;
};

}  // namespace firn
