// The end of all faults in a simulated world, and the checks after it.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/violation.h"
#include "tests/sim/world.h"

namespace firn {
namespace {

// Maximum time until service returns, from the end of all faults or from the last bound for which
// hosts had to wait.
constexpr Milliseconds kServiceWithin{30 * 60'000};
constexpr Milliseconds kWaitMax{24 * 3'600'000};
constexpr Milliseconds kFineUntil{60'000};
constexpr Milliseconds kReadEvery{60'000};
// Time in which every host reads the registry once.
constexpr Milliseconds kTwinsFoundWithin{120'000};

}  // namespace

void SimWorld::EndFaults() {
  shared_.Trace("no more faults");
  sizes_.rates = {};
  outage_ = false;
  registry_clock_.SetRight();
  if (!operator_.IsWhole()) operator_.Restore();
  for (const auto& host : hosts_) {
    host->disk().writes_fail = host->disk().removal_fails = false;
    host->clock().SetRight();
    host->paused_until = {};
    host->EndFaults();
    host->Start(true);
    host->Reconnect();
  }
}

// Requires that as many hosts serve at the same time as there are slots.
bool SimWorld::DemandService() {
  // Servers claim only until a day before the layout's end.
  if (clock_.Wall() + kWaitMax > Layout::Parse(sizes_.layout)->end()) return false;
  const BootMs begin = clock_.Boot();
  BootMs limit = begin + kServiceWithin;
  const size_t wanted = HostsWanted();
  // A host that reconnects may freeze the cluster again, with a bound that the restore did not
  // know.
  size_t restores = hosts_.size();
  BootMs look_at = begin;
  while (clock_.Boot() < limit) {
    clock_.Advance(Milliseconds(clock_.Boot() < begin + kFineUntil ? 50 : 1'000));
    ExpireSessions();
    if (HostsServing() >= wanted) {
      DemandNoTwins();
      return true;
    }
    if (!operator_.IsWhole() && restores-- > 0) operator_.Restore();
    if (clock_.Boot() < look_at || !operator_.IsWhole()) continue;
    // Check repeatedly, not only at the limit: a host that waited may have claimed shortly before
    // it.
    look_at = clock_.Boot() + kReadEvery;
    const Milliseconds lead = sizes_.strict ? LongestLead() : Milliseconds(0);
    // Repeated restores may have raised ids so far that hosts wait beyond the limit for their
    // clocks to catch up.
    const bool waits = lead > Milliseconds(0);
    if (waits && clock_.Boot() + lead + kServiceWithin > begin + kWaitMax) return false;
    const Milliseconds wait = std::max(operator_.LongestWait(), lead);
    if (wait <= Milliseconds(0)) continue;
    limit = std::min(begin + kWaitMax, std::max(limit, clock_.Boot() + wait + kServiceWithin));
  }
  std::string states;
  for (const auto& host : hosts_) states += "\n  " + host->Status();
  throw Violation(8, "no service after the end of all faults" + states + operator_.RegistryText());
}

// Requires that holders with correct clocks continue to serve while the registry's clock is wrong,
// and set no bound by it.
void SimWorld::DemandSteadiness() {
  // Waits until every host has read the registry and every shared claim was detected.
  const auto pass = [this](Milliseconds time) {
    for (const BootMs until = clock_.Boot() + time; clock_.Boot() < until;) {
      clock_.Advance(Milliseconds(500));
      HostsServing();
    }
  };
  pass(kTwinsFoundWithin);
  if (!operator_.IsWhole() || LongestLead() > kReadEvery) return;
  std::vector<std::pair<SimHost*, Milliseconds>> steady;
  for (const auto& host : hosts_) {
    const bool settled = host->renews() && !host->in_doubt();
    if (settled && host->Left() > sizes_.window / 2) steady.emplace_back(host.get(), host->Left());
  }
  const Milliseconds off(static_cast<int64_t>(1 + dice_.Below(48)) * 3'600'000);
  registry_clock_.SetOff(OneIn(2) ? off : -off, BootMs(INT64_MAX));
  shared_.Trace("the registry's clock is off by " + std::to_string(off.count()) + " ms either way");
  pass(3 * sizes_.window);
  for (const auto& [host, left] : steady) {
    if (!host->renews() || host->Left() <= sizes_.window / 2) {
      throw Violation(
          13, "a holder does not serve while the registry's clock is wrong: " + host->Status());
    }
    Require(host->Left() <= left + sizes_.window, 13,
            "a wrong clock of the registry moved a bound far ahead");
  }
  registry_clock_.SetRight();
}

Milliseconds SimWorld::LongestLead() const {
  Milliseconds longest{0};
  for (const auto& host : hosts_) longest = std::max(longest, host->Lead());
  return longest;
}

// Requires that no two hosts hold the same claim. All are connected, so each shared claim has been
// detected.
void SimWorld::DemandNoTwins() {
  const auto in_doubt = [](const auto& host) { return host->in_doubt(); };
  if (std::none_of(hosts_.begin(), hosts_.end(), in_doubt)) return;
  for (const BootMs limit = clock_.Boot() + kTwinsFoundWithin; clock_.Boot() < limit;) {
    clock_.Advance(Milliseconds(500));
    HostsServing();
  }
  // A host that no longer renews is not detected, but stops at its bound.
  std::set<std::string> nonces;
  for (const auto& host : hosts_) {
    if (!host->renews()) continue;
    Require(nonces.insert(host->tenure()->terms().nonce.text()).second, 11,
            "two copies share a claim, and are not detected");
  }
}

size_t SimWorld::HostsWanted() const {
  std::vector<size_t> in_rack(sizes_.racks());
  for (const auto& host : hosts_) ++in_rack[host->rack()];
  size_t wanted = 0;
  for (const size_t hosts : in_rack) wanted += std::min<size_t>(hosts, sizes_.slots);
  return wanted;
}

size_t SimWorld::HostsServing() {
  size_t serving = 0;
  for (const auto& host : hosts_) {
    ++steps_;
    host->RunGhost();
    host->Start(true);
    host->Step();
    if (host->Serves()) ++serving;
  }
  return serving;
}

}  // namespace firn
