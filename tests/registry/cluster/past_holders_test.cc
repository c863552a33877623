#include "registry/cluster/past_holders.h"

#include <string>

#include <gtest/gtest.h>

namespace firn {
namespace {

PastHolder Holder(int64_t first, int64_t end) {
  return {"firn.7609.2130706433.9e107d9d372bb682", "host-1", 4711, WallMs(first), WallMs(end)};
}

TEST(PastHoldersTest, ReadBackAsWritten) {
  PastHolders past;
  past.Add(Holder(1000, 2000));
  past.Add({"", "a \"host\"", 0, WallMs(2000), WallMs(2001)});
  EXPECT_EQ(*PastHolders::Parse(past.Text()), past);
  EXPECT_EQ(*PastHolders::Parse(PastHolders().Text()), PastHolders());
}

TEST(PastHoldersTest, KeepTheLastHundredOnly) {
  PastHolders past;
  for (int64_t i = 0; i < 103; ++i) past.Add(Holder(i * 10, i * 10 + 10));
  ASSERT_EQ(past.holders().size(), PastHolders::kHoldersMax);
  EXPECT_EQ(past.holders().front().first, WallMs(30));
  EXPECT_EQ(past.holders().back().end, WallMs(1030));
  EXPECT_EQ(*PastHolders::Parse(past.Text()), past);
}

TEST(PastHoldersTest, FitIntoANodeHoweverLongTheNames) {
  PastHolders past;
  const std::string name(255, '\x01');
  for (int64_t i = 0; i < 100; ++i) past.Add({name, name, INT64_MAX, WallMs(i), WallMs(i + 1)});
  EXPECT_LE(past.Text().size(), PastHolders::kBytesMax);
  EXPECT_TRUE(PastHolders::Parse(past.Text()).ok());
}

TEST(PastHoldersTest, OmitEmptyHoldings) {
  PastHolders past;
  past.Add(Holder(2000, 2000));
  past.Add(Holder(2000, 1000));
  past.Add(HolderIn(SlotRecord(), Nonce(1, 1), 7));
  EXPECT_TRUE(past.holders().empty());
}

// The end of a lease that issued no id, which a copied state folder may contain.
TEST(PastHoldersTest, KeepAnEmptyHoldingOfAClaim) {
  PastHolders past;
  PastHolder unused = Holder(2000, 2000);
  unused.nonce = Nonce(1, 2);
  past.Add(unused);
  EXPECT_TRUE(past.holders().empty()) << "its version is not known";
  unused.version = 7;
  past.Add(unused);
  ASSERT_EQ(past.holders().size(), 1U);
  EXPECT_EQ(PastHolders::Parse(past.Text()).value(), past);
  for (int64_t i = 0; i < 100; ++i) past.Add(Holder(3000 + i * 10, 3010 + i * 10));
  EXPECT_EQ(past.holders().front().first, WallMs(3000)) << "it leaves before a holder of ids";
}

TEST(PastHoldersTest, IgnoreMembersOfLaterVersions) {
  const auto past = PastHolders::Parse(
      R"({"format":3,"holders":[{"owner":"o","host":"h","pid":1,"first_ms":1,"end_ms":2,"x":[]}]})");
  ASSERT_TRUE(past.ok()) << past.status();
  EXPECT_EQ(past->holders().size(), 1u);
}

TEST(PastHoldersTest, RefuseAnythingButAList) {
  for (const std::string text :
       {"", "[]", "{}", "{\"holders\":1}", "{\"holders\":[1]}", "{\"holders\":[{\"owner\":\"o\"}]}",
        R"({"holders":[{"owner":"o","host":"h","pid":-1,"first_ms":1,"end_ms":2}]})",
        R"({"holders":[{"owner":"o","host":"h","pid":1,"first_ms":1,"end_ms":1e300}]})"}) {
    EXPECT_EQ(PastHolders::Parse(text).code(), Code::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace firn
