#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "client/fleet/fleet.h"
#include "tests/support/virtual_clock.h"

namespace firn::client {

inline constexpr Milliseconds kWarm{20'000};

inline KnownServer At(int number, uint32_t rack = 0) {
  return {.address = "10.0.0." + std::to_string(number) + ":7609", .rack = rack};
}

inline Outcome Refusal(Reason reason, Milliseconds retry_after = Milliseconds(0)) {
  Outcome outcome = Outcome::Of(AttemptEnd::kRefused, "no");
  outcome.refusal = reason;
  outcome.retry_after = retry_after;
  return outcome;
}

// A fleet of imaginary servers with a virtual clock.
class FleetTest : public testing::Test {
 protected:
  // Creates a fleet whose servers are warmed up.
  Fleet& Of(std::vector<KnownServer> servers, bool fixed = false) {
    list_ = {.servers = std::move(servers), .fixed = fixed};
    fleet_.emplace(options_, clock_, 42);
    fleet_->Apply(list_);
    clock_.Advance(kWarm);
    return *fleet_;
  }

  Micros Now() const { return clock_.BootMicros(); }

  ServerPtr Pick(std::string_view tag = "order", std::vector<ServerPtr> tried = {}) {
    return fleet_->Pick(tag, tried, Now());
  }
  // Picks this server, even if it is ejected.
  ServerPtr PickNumber(int number) {
    std::vector<ServerPtr> tried;
    for (ServerPtr server; (server = Pick("order", tried)) != nullptr; tried.push_back(server)) {
      if (server->name == At(number).address) return server;
    }
    ADD_FAILURE() << "it is not asked";
    return nullptr;
  }
  // Ends an attempt. All latencies are equal, so they do not influence the picks.
  void End(const ServerPtr& server, const Outcome& outcome, std::string_view tag = "order") {
    fleet_->Done(*server, tag, outcome, options_.attempt_limit, Now());
  }
  // Makes this number of calls, which are all answered. Returns how often each server was picked.
  std::map<std::string, int> Asked(int calls = 60, std::string_view tag = "order") {
    std::map<std::string, int> asked;
    for (int i = 0; i < calls; ++i) {
      const ServerPtr server = Pick(tag);
      if (server == nullptr) continue;
      ++asked[server->name];
      End(server, {}, tag);
    }
    return asked;
  }
  // Makes calls until `times` calls at this server have had this outcome.
  void Happen(int number, const Outcome& outcome, int times = 1, std::string_view tag = "order") {
    for (int left = times, tries = 0; left > 0; ++tries) {
      ASSERT_LT(tries, 1000) << "it is not asked";
      const ServerPtr server = Pick(tag);
      const bool it = server->name == At(number).address;
      End(server, it ? outcome : Outcome(), tag);
      left -= it ? 1 : 0;
    }
  }
  // Answers the probe of a server that refused with DRAINING: its status confirms it.
  void ConfirmDraining(int number) {
    ServerFacts facts;
    facts.draining = true;
    for (const ServerPtr& server : fleet_->TakeProbes(Now())) {
      EXPECT_EQ(server->name, At(number).address);
      fleet_->Probed(*server, {}, facts, Now());
    }
    EXPECT_EQ(HealthOf(number), ServerHealth::kDraining);
  }
  ServerHealth HealthOf(int number) {
    for (const SeenServer& view : fleet_->View().servers) {
      if (view.known.address == At(number).address) return view.health;
    }
    ADD_FAILURE() << "no such server";
    return {};
  }
  static bool Names(const std::map<std::string, int>& asked, int number) {
    return asked.contains(At(number).address);
  }

  ClientOptions options_;
  VirtualClock clock_{WallMs(1'700'000'000'000)};
  ServerList list_;
  std::optional<Fleet> fleet_;
};

inline const Outcome kTimeout = Outcome::Of(AttemptEnd::kTimeout, {});
inline const Outcome kUnreachable = Outcome::Of(AttemptEnd::kUnreachable, "refused");
inline const Outcome kBroken = Outcome::Of(AttemptEnd::kBroken, "invalid");

}  // namespace firn::client
