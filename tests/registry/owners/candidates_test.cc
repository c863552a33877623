#include "registry/owners/candidates.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace firn {
namespace {

// Servers of different versions must compute the same partition.
TEST(CandidatesTest, PartitionsNeverChange) {
  EXPECT_EQ(PartitionOf("default"), 5U);
  EXPECT_EQ(PartitionOf("orders"), 1U);
  EXPECT_EQ(PartitionOf("invoices"), 5U);
  EXPECT_EQ(PartitionOf(""), 6U);
}

TEST(CandidatesTest, NamesAreSpreadOverThePartitions) {
  std::array<int, kPartitions> names{};
  for (int i = 0; i < 8'000; ++i) ++names.at(PartitionOf("tag" + std::to_string(i)));
  for (const int count : names) {
    EXPECT_GT(count, 850);
    EXPECT_LT(count, 1'150);
  }
}

std::vector<std::string> Servers(int count) {
  std::vector<std::string> servers;
  for (int i = 0; i < count; ++i) servers.push_back("10.0.0." + std::to_string(i) + ":7609");
  return servers;
}

TEST(CandidatesTest, EveryServerHasARankOfItsOwn) {
  const std::vector<std::string> servers = Servers(20);
  for (size_t partition = 0; partition < kPartitions; ++partition) {
    std::set<size_t> ranks;
    for (const std::string& server : servers) ranks.insert(RankOf(partition, server, servers));
    EXPECT_EQ(ranks.size(), servers.size());
    EXPECT_EQ(*ranks.rbegin(), servers.size() - 1);
  }
}

TEST(CandidatesTest, OrderOfTheListDoesNotMatter) {
  std::vector<std::string> servers = Servers(5);
  const size_t rank = RankOf(3, servers[1], servers);
  std::reverse(servers.begin(), servers.end());
  EXPECT_EQ(RankOf(3, servers[3], servers), rank);
}

TEST(CandidatesTest, LeavingServerMovesNoOtherPair) {
  const std::vector<std::string> all = Servers(9);
  std::vector<std::string> fewer(all.begin(), all.end() - 1);
  for (size_t partition = 0; partition < kPartitions; ++partition) {
    for (const std::string& a : fewer) {
      for (const std::string& b : fewer) {
        EXPECT_EQ(RankOf(partition, a, all) < RankOf(partition, b, all),
                  RankOf(partition, a, fewer) < RankOf(partition, b, fewer));
      }
    }
  }
}

TEST(CandidatesTest, UnlistedServerComesLast) {
  EXPECT_EQ(RankOf(0, "10.9.9.9:7609", Servers(4)), 4U);
  EXPECT_EQ(RankOf(0, "10.9.9.9:7609", {}), 0U);
}

}  // namespace
}  // namespace firn
