#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "client/lease/lessee.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// Rules that a test can make a server break, to show that the checks detect it.
enum class LeaseFault : uint8_t {
  kNone,
  kExtendsForeign,   // extends a lease although its slot has another holder
  kIgnoresBounds,    // claims a slot before its bound
  kForgetsPromises,  // frees an expired lease's slot at once, not at the granted end
};

// A server and a registry of `kSlots` machine ids, which follow the rules of leases. The server's
// clock is correct.
class LeaseServerModel {
 public:
  static constexpr uint32_t kSlots = 3;

  LeaseServerModel(LeaseFault fault, SeededEntropy& entropy) : fault_(fault), entropy_(entropy) {}

  LeaseOutcome Answer(const LeaseRequest& ask, WallMs now);
  // Removes leases whose granted end has passed.
  void Expire(WallMs now);
  // Forgets every lease; the slots keep their bounds.
  void Crash() { leases_.clear(); }
  // Ends a lease, as if another holder had taken its slot.
  void FindForeign(WallMs now);

  size_t leases() const { return leases_.size(); }

 private:
  struct Lease {
    std::string token{};
    uint32_t slot = 0;
    WallMs from{};
    WallMs bound{};
    WallMs promised{};
    std::string turn{};
    bool gone = false;
  };
  struct Slot {
    WallMs bound;
    std::string holder{};
  };

  LeaseOutcome Grant(const LeaseRequest& ask, WallMs now);
  LeaseOutcome Renew(const LeaseRequest& ask, WallMs now);
  LeaseOutcome Release(const LeaseRequest& ask);
  LeaseOutcome Promise(const std::string& name, Lease& lease) const;
  void Free(const std::string& name, const Lease& lease, WallMs bound);

  const LeaseFault fault_;
  SeededEntropy& entropy_;
  const Layout layout_ = Layout::Firn();
  std::array<Slot, kSlots> slots_;
  std::map<std::string, Lease> leases_;
};

// Lessees with wrong clocks, pauses and lost answers, and one server. Deterministic for each seed.
class LesseeWorld {
 public:
  LesseeWorld(uint64_t seed, LeaseFault fault);
  ~LesseeWorld();

  void Step();

  struct Outcome {
    uint64_t ids = 0;
    uint64_t duplicates = 0;
    uint64_t descents = 0;  // ids of one lessee that did not rise
    uint64_t grants = 0;    // granted leases
    uint64_t gone = 0;
    uint64_t expired = 0;
    uint64_t released = 0;
  };
  const Outcome& outcome() const { return outcome_; }

 private:
  class Program;

  void Deliver(Program& program);
  void TakeIds(Program& program);
  bool Once(uint64_t in) { return entropy_.Below(in) == 0; }

  SeededEntropy entropy_;
  WallMs now_ = At("2026-11-26T12:00:00Z");
  LeaseServerModel server_;
  bool reachable_ = true;
  std::vector<std::unique_ptr<Program>> programs_;
  std::unordered_set<int64_t> issued_;
  Outcome outcome_;
};

}  // namespace firn
