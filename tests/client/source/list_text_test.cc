#include "client/source/list_text.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

KeptList Sample() {
  KeptList kept{.registry = "zk://zk1:2181,zk2:2181/firn/shop", .list = {.servers = {}}};
  kept.list.cluster = {
      .uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab", .name = {}, .layout = "firn"};
  kept.list.from_cache = true;
  kept.list.servers = {
      {.address = "10.0.0.7:7609"},
      {.address = "[2001:db8::7]:7609", .rack = 3, .weight = 0, .phase = ServerPhase::kNotReady},
      {.address = "order-1.example:80", .disabled = true, .phase = ServerPhase::kDraining},
      {.address = "order-2.example:80", .tls = true}};
  return kept;
}

TEST(ListText, SurvivesARoundTrip) {
  EXPECT_EQ(ParseList(FormatList(Sample())).value(), Sample());
  const KeptList empty{.registry = "dir:///x y", .list = {.servers = {}, .from_cache = true}};
  EXPECT_EQ(ParseList(FormatList(empty)).value(), empty);
}

TEST(ListText, RefusesATextTornAtAnyByteWithAReason) {
  const std::string text = FormatList(Sample());
  for (size_t size = 0; size < text.size(); ++size) {
    const auto torn = ParseList(std::string_view(text).substr(0, size));
    EXPECT_EQ(torn.code(), Code::kCorrupt) << size;
    EXPECT_FALSE(torn.status().message().empty()) << size;
    // The disk had room for the whole file, but not all of it was written.
    const std::string blank = text.substr(0, size) + std::string(text.size() - size, '\0');
    EXPECT_EQ(ParseList(blank).code(), Code::kCorrupt) << size;
  }
}

TEST(ListText, RefusesOneChangedBit) {
  const std::string text = FormatList(Sample());
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(ParseList(flipped).code(), Code::kCorrupt) << bit;
  }
}

TEST(ListText, RefusesTextAfterTheChecksum) {
  const std::string text = FormatList(Sample());
  EXPECT_EQ(ParseList(text + "\n").code(), Code::kCorrupt);
  EXPECT_EQ(ParseList(text + text).code(), Code::kCorrupt);
}

TEST(ListText, RefusesTooManyServers) {
  KeptList many = Sample();
  many.list.servers.assign(ServerList::kServersMax, {.address = "10.0.0.7:7609"});
  EXPECT_TRUE(ParseList(FormatList(many)).ok());
  many.list.servers.push_back({.address = "10.0.0.7:7609"});
  EXPECT_EQ(ParseList(FormatList(many)).code(), Code::kCorrupt);
}

TEST(ListText, RefusesAnInvalidServerWithACorrectChecksum) {
  for (const char* address : {"", "nonsense", "10.0.0.7:99999", "a b:1\n", "unix:/run/a.sock"}) {
    KeptList kept = Sample();
    kept.list.servers[0].address = address;
    EXPECT_EQ(ParseList(FormatList(kept)).code(), Code::kCorrupt) << address;
  }
  KeptList kept = Sample();
  kept.list.servers[0].weight = -1;
  EXPECT_EQ(ParseList(FormatList(kept)).code(), Code::kCorrupt);
}

}  // namespace
}  // namespace firn
