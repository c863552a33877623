#include <array>
#include <functional>
#include <span>

#include "tests/client/fleet/fleet_rig.h"

namespace firn::client {
namespace {

class CountersTest : public FleetTest {
 protected:
  CountersTest() { Of({At(1), At(2), At(3), At(4)}); }

  // Returns by how much each of these counters rises during `what`.
  template <size_t n>
  std::array<uint64_t, n> Grown(uint64_t ClientCounters::*const (&which)[n],
                                const std::function<void()>& what) {
    const ClientCounters before = fleet_->counters();
    what();
    const ClientCounters after = fleet_->counters();
    std::array<uint64_t, n> grown{};
    for (size_t i = 0; i < n; ++i) grown[i] = after.*which[i] - before.*which[i];
    return grown;
  }
};

using C = ClientCounters;

TEST_F(CountersTest, CountHowAttemptsEnd) {
  constexpr uint64_t C::*kEnds[] = {&C::timeouts, &C::broken, &C::refused};
  const auto ends = [&](const Outcome& outcome) {
    return Grown(kEnds, [&] { End(Pick(), outcome); });
  };
  using Three = std::array<uint64_t, 3>;
  EXPECT_EQ(ends({}), (Three{0, 0, 0}));
  EXPECT_EQ(ends(kUnreachable), (Three{0, 0, 0}));
  EXPECT_EQ(ends(kTimeout), (Three{1, 0, 0}));
  EXPECT_EQ(ends(Outcome::Of(AttemptEnd::kConnectTimeout, {})), (Three{1, 0, 0}));
  EXPECT_EQ(ends(Refusal(Reason::kOverloaded)), (Three{0, 0, 1}));
  EXPECT_EQ(ends(Outcome::Of(AttemptEnd::kWrongService, "it is none")), (Three{0, 1, 0}));
  EXPECT_EQ(ends(kBroken), (Three{0, 1, 0}));
}

TEST_F(CountersTest, CountEjectionsQuarantinesPanicsAndLists) {
  constexpr uint64_t C::*kLeft[] = {&C::ejections, &C::quarantines, &C::panics, &C::lists};
  using Four = std::array<uint64_t, 4>;
  EXPECT_EQ(Grown(kLeft, [this] { Happen(1, kTimeout, 3); }), (Four{1, 0, 0, 0}));
  EXPECT_EQ(Grown(kLeft, [this] { Happen(2, kBroken); }), (Four{0, 1, 0, 0}));
  EXPECT_EQ(Grown(kLeft,
                  [this] {
                    Happen(3, kTimeout, 3);
                    Pick();
                  }),
            (Four{0, 0, 1, 0}))
      << "it may not be ejected";
  EXPECT_EQ(Grown(kLeft, [this] { fleet_->Apply(list_); }), (Four{0, 0, 0, 1}));
}

TEST_F(CountersTest, CountProbesAndLookups) {
  constexpr uint64_t C::*kDone[] = {&C::probes, &C::probes_lost, &C::lookups};
  using Three = std::array<uint64_t, 3>;
  Happen(1, kTimeout, 3);
  clock_.Advance(Milliseconds(60'000));
  std::vector<ServerPtr> probed;
  EXPECT_EQ(Grown(kDone, [&] { probed = fleet_->TakeProbes(Now()); }), (Three{1, 0, 0}));
  ASSERT_EQ(probed.size(), 1u);
  EXPECT_EQ(Grown(kDone, [&] { fleet_->Probed(*probed[0], kTimeout, {}, Now()); }),
            (Three{0, 1, 0}));
  fleet_->Apply({.servers = {{.address = "shop:7609"}}});
  EXPECT_EQ(Grown(kDone, [this] { fleet_->TakeUnresolved(Now()); }), (Three{0, 0, 1}));
}

TEST_F(CountersTest, CountConnects) {
  constexpr uint64_t C::*kConnects[] = {&C::connects, &C::connects_failed};
  using Two = std::array<uint64_t, 2>;
  const ServerPtr server = Pick();
  const std::vector<Address> addresses = fleet_->AddressesInTurn(*server);
  EXPECT_EQ(Grown(kConnects, [&] { fleet_->Dialled(*server, addresses[0], {}, Now()); }),
            (Two{1, 0}));
  EXPECT_EQ(Grown(kConnects, [&] { fleet_->Dialled(*server, {}, addresses, Now()); }), (Two{0, 1}));
}

}  // namespace
}  // namespace firn::client
