#include "server/front/net/places.h"

#include <string>
#include <vector>

#include <boost/asio/ip/address.hpp>
#include <gtest/gtest.h>

namespace firn::front {
namespace {

uint64_t PeerAt(const std::string& address) {
  return Places::PeerAt(boost::asio::ip::make_address(address));
}

TEST(PlacesTest, TreatsAnIpv6NetworkAsOnePeer) {
  EXPECT_EQ(PeerAt("2001:db8:0:1::1"), PeerAt("2001:db8:0:1:ffff:1234:5678:9abc"));
  EXPECT_NE(PeerAt("2001:db8:0:1::1"), PeerAt("2001:db8:0:2::1"));
  EXPECT_EQ(PeerAt("::ffff:192.0.2.7"), PeerAt("192.0.2.7"));
  EXPECT_NE(PeerAt("192.0.2.7"), PeerAt("192.0.2.8"));
  EXPECT_NE(PeerAt("::1"), PeerAt("192.0.2.7"));
  EXPECT_NE(Places::PeerOf(0), PeerAt("::1"));
}

TEST(PlacesTest, LimitsTheAddressesOfANetworkTogether) {
  Limits limits;
  limits.connections_per_peer_max = 2;
  Places places(limits);
  const auto first = places.Take(PeerAt("2001:db8::1"));
  auto second = places.Take(PeerAt("2001:db8::2"));
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(places.Take(PeerAt("2001:db8::3")));
  EXPECT_TRUE(places.Take(PeerAt("2001:db8:0:1::3")));
  second.reset();
  EXPECT_TRUE(places.Take(PeerAt("2001:db8::3")));
}

// Each address has fewer connections than the IPv4 peer, but the network has more.
TEST(PlacesTest, ClosesTheLongestIdleConnectionOfTheNetworkThatHasMost) {
  std::vector<Closable> all;
  for (int64_t i = 0; i < 3; ++i) {
    all.push_back({.connection = nullptr, .peer = PeerAt("192.0.2.7"), .since_ms = i});
  }
  for (int64_t i = 0; i < 4; ++i) {
    const std::string address = "2001:db8::" + std::to_string(1 + i / 2);
    all.push_back({.connection = nullptr, .peer = PeerAt(address), .since_ms = 100 + i});
  }
  RankForClosing(all, [](uint64_t, uint64_t sum) { return sum; });
  EXPECT_EQ(all.back().of_peer, 4u);
  EXPECT_EQ(all.back().since_ms, 100);
  all.pop_back();
  EXPECT_EQ(all.back().since_ms, 0) << "both have three: the one that is idle for longest";
}

constexpr int64_t kNowMs = 100'000;
constexpr uint64_t kReader = 1, kStalled = 2;

Closable Holds(uint64_t peer, uint64_t bytes, int64_t still_ms) {
  return {.connection = nullptr, .peer = peer, .since_ms = kNowMs - still_ms, .cost = bytes};
}

TEST(PlacesTest, ClosesManyStalledConnectionsBeforeAFewLargerOnesThatRead) {
  std::vector<Closable> all;
  for (int i = 0; i < 5; ++i) all.push_back(Holds(kReader, 1'500'000, 0));
  for (int i = 0; i < 300; ++i) all.push_back(Holds(kStalled, 900'000, 5'000));
  RankForMemory(all, kNowMs);
  for (int i = 0; i < 50; ++i, all.pop_back()) ASSERT_EQ(all.back().peer, kStalled) << i;
}

TEST(PlacesTest, ClosesTheStalledPeerOfTwoWithEqualMemory) {
  std::vector<Closable> all{Holds(kStalled, 500'000, 5'000), Holds(kReader, 1'000'000, 0),
                            Holds(kStalled, 500'000, 5'000)};
  RankForMemory(all, kNowMs);
  EXPECT_EQ(all.back().peer, kStalled);
  all[0] = Holds(kReader, 900'000, 0);
  all[1] = Holds(kStalled, 900'000, 1'000);
  all[2] = Holds(kReader, 600'000, 0);
  RankForMemory(all, kNowMs);
  EXPECT_EQ(all.back().peer, kStalled) << "the other peer has more, but reads it";
}

}  // namespace
}  // namespace firn::front
