#include "registry/cluster/records.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/id/layout.h"

namespace firn {
namespace {

constexpr char kUuid[] = "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1";

ClusterMeta SomeMeta() {
  return {.uuid = kUuid,
          .era = Nonce(3, 4),
          .layout = "firn",
          .rack_bits = 2,
          .floor = WallMs(1'700'000'000'001),
          .frozen = true,
          .reason = "a \"quoted\" \\ word, \xc3\xa9"};
}

SlotRecord SomeRecord() {
  return {.nonce = Nonce(0x0123456789abcdef, 1),
          .bound = WallMs(1'700'000'000'007),
          .owner = "firn.7609.2130706433",
          .since = WallMs(1'700'000'000'000),
          .host = "here",
          .pid = 4711,
          .build = "0.1.0",
          .retired = false};
}

std::string With(std::string json, const std::string& what, const std::string& instead) {
  const size_t at = json.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return json.replace(at, what.size(), instead);
}

TEST(RecordsTest, EveryRecordReadsBackAsWritten) {
  EXPECT_EQ(*ParseMeta(FormatMeta(SomeMeta())), SomeMeta());
  EXPECT_EQ(*ParseSlotRecord(FormatSlotRecord(SomeRecord())), SomeRecord());
  const LiveMark mark{"10.1.2.3:7609", Nonce(7, 8)};
  EXPECT_EQ(*ParseLiveMark(FormatLiveMark(mark)), mark);
}

TEST(RecordsTest, IsReadableText) {
  EXPECT_EQ(FormatLiveMark({"h:1", Nonce(1, 2)}),
            R"({"endpoint":"h:1","nonce":"00000000000000010000000000000002","format":2})");
}

TEST(RecordsTest, NeverUsedIsZeroNonceAndZeroBound) {
  EXPECT_TRUE(SlotRecord().never_used());
  EXPECT_FALSE(SomeRecord().never_used());
  SlotRecord released = SomeRecord();
  released.nonce = Nonce();
  EXPECT_FALSE(released.never_used());
}

TEST(RecordsTest, ReadsBackWithAnyHostName) {
  SlotRecord record = SomeRecord();
  record.host = std::string("a\nb\x7f\xff", 5);
  const auto read = ParseSlotRecord(FormatSlotRecord(record));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->host, "a?b?\xef\xbf\xbd");
}

TEST(RecordsTest, RefusesForeignAndDamagedRecordsWithAReason) {
  const std::string good = FormatSlotRecord(SomeRecord());
  const std::vector<std::string> bad = {
      "",
      "{",
      "null",
      "[]",
      "7",
      "\"x\"",
      good.substr(0, good.size() - 1),
      good + "x",
      good + good,
      std::string(1 << 20, ' '),
      std::string(1 << 20, '['),
      With(good, "\"pid\":4711,", ""),
      With(good, "\"pid\":4711", "\"pid\":4711,\"pid\":4711"),
      With(good, "\"pid\":4711", "\"pid\":-1"),
      With(good, "\"pid\":4711", "\"pid\":4711.0"),
      With(good, "\"pid\":4711", "\"pid\":1e3"),
      With(good, "\"pid\":4711", "\"pid\":99999999999999999999"),
      With(good, "\"pid\":4711", "\"pid\":{}"),
      With(good, "\"pid\":4711", "\"pid\":null"),
      With(good, "\"pid\"", "\"pidx\""),
      With(good, "1700000000007", "-1"),
      With(good, "1700000000007", "253402300800001"),
      With(good, "1700000000007", "9223372036854775808"),
      With(good, "0123456789abcdef", "0123456789ABCDEF"),
      With(good, "0123456789abcdef", "0123456789abcde"),
      With(good, "here", "he\\u0000re"),
      With(good, "here", "he\nre"),
      With(good, "here", "\xff"),
      With(good, "here", std::string(256, 'x')),
      With(good, "false", "0"),
      FormatMeta(SomeMeta()),
  };
  for (const std::string& json : bad) {
    const Status refused = ParseSlotRecord(json).status();
    EXPECT_EQ(refused.code(), Code::kCorrupt) << json.substr(0, 200);
    EXPECT_FALSE(refused.message().empty());
  }
}

TEST(SlotRecordTest, TheWriterCountsOnlyWithTheWordOfItsRecord) {
  SlotRecord record{.nonce = Nonce(1, 2), .word = Nonce(3, 4), .bound = WallMs(9)};
  record.writer = SlotWriter{Nonce(1, 2), Nonce(5, 6), WallMs(7)};
  std::string text = FormatSlotRecord(record);
  EXPECT_EQ(*ParseSlotRecord(text), record);
  // An earlier version replaces the word and keeps this member.
  const std::string word = "\"word\":\"" + Nonce(3, 4).text();
  text.replace(text.find(word), word.size(), "\"word\":\"" + Nonce(3, 5).text());
  EXPECT_FALSE(ParseSlotRecord(text)->writer);
  EXPECT_EQ(ParseSlotRecord(text)->claim(), Nonce(1, 2));
  record.nonce = {};
  EXPECT_EQ(ParseSlotRecord(FormatSlotRecord(record))->claim(), Nonce(1, 2)) << "released";
}

TEST(RecordsTest, ALeaseCountsOnlyWithTheNonceOfItsRecord) {
  SlotRecord record{.nonce = Nonce(1, 2), .bound = WallMs(9), .lease = SlotLease{"shop", "h:1"}};
  std::string text = FormatSlotRecord(record);
  const Result<SlotRecord> read = ParseSlotRecord(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, record);
  // A server without support for leases replaces the nonce and keeps this member.
  text.replace(text.find(Nonce(1, 2).text()), Nonce::kTextBytes, Nonce(3, 4).text());
  ASSERT_TRUE(ParseSlotRecord(text).ok());
  EXPECT_FALSE(ParseSlotRecord(text)->lease);
  EXPECT_EQ(ParseSlotRecord(text)->others, "");
  record.nonce = Nonce();
  EXPECT_EQ(FormatSlotRecord(record).find("lease"), std::string::npos);
}

TEST(RecordsTest, TheShareOfLeasesIsHalfUnlessItIsWritten) {
  ClusterMeta meta = SomeMeta();
  EXPECT_EQ(FormatMeta(meta).find("lease_share"), std::string::npos);
  EXPECT_EQ(ParseMeta(FormatMeta(meta))->lease_share, 50);
  meta.lease_share = 10;
  EXPECT_EQ(ParseMeta(FormatMeta(meta))->lease_share, 10);
  meta.lease_share = 101;
  EXPECT_FALSE(ParseMeta(FormatMeta(meta)).ok());
}

TEST(RecordsTest, MembersOfALaterVersionAreKept) {
  const std::string later = R"("reserved":{"until":7,"by":["a",null,1.5]},"x":[[]],"y":false})";
  const auto with = [&later](std::string json) {
    return json.replace(json.size() - 1, 1, "," + later);
  };
  const std::string record = with(FormatSlotRecord(SomeRecord()));
  ASSERT_TRUE(ParseSlotRecord(record).ok()) << ParseSlotRecord(record).status();
  EXPECT_EQ(FormatSlotRecord(*ParseSlotRecord(record)), record);
  EXPECT_EQ(ParseSlotRecord(record)->owner, SomeRecord().owner);
  const std::string meta = with(FormatMeta(SomeMeta()));
  ASSERT_TRUE(ParseMeta(meta).ok()) << ParseMeta(meta).status();
  EXPECT_EQ(FormatMeta(*ParseMeta(meta)), meta);
  const LiveMark mark{"h:1", Nonce(7, 8)};
  EXPECT_EQ(*ParseLiveMark(with(FormatLiveMark(mark))), mark);
}

TEST(RecordsTest, RefusesMembersThatCannotBePreserved) {
  const std::string good = FormatSlotRecord(SomeRecord());
  for (const std::string& member :
       {std::string(R"("x":1,"x":2)"), "\"x\":" + std::string(9, '[') + std::string(9, ']'),
        "\"x\":\"" + std::string(5000, 'x') + "\"", std::string("\"x\":1e999"),
        std::string("\"x\":[1"), std::string("\"x\":\"\xff\"")}) {
    const std::string json = With(good, "\"pid\":4711", "\"pid\":4711," + member);
    EXPECT_EQ(ParseSlotRecord(json).code(), Code::kCorrupt) << member.substr(0, 100);
  }
}

// The format is checked before the other members.
TEST(RecordsTest, RefusesARootNodeOfAnotherFormatByName) {
  for (const std::string& json : {With(FormatMeta(SomeMeta()), "\"format\":2", "\"format\":1"),
                                  std::string(R"({"format":1})")}) {
    const auto old = ParseMeta(json);
    EXPECT_EQ(old.code(), Code::kInvalid);
    EXPECT_NE(old.status().message().find("Firn 0.1"), std::string::npos) << old.status();
  }
  const auto newer = ParseMeta(R"({"format":3,"uuid":[1]})");
  EXPECT_EQ(newer.code(), Code::kInvalid);
  EXPECT_NE(newer.status().message().find("format 3"), std::string::npos) << newer.status();
}

TEST(RecordsTest, RefusesARootNodeWithInvalidValues) {
  const std::string good = FormatMeta(SomeMeta());
  EXPECT_FALSE(ParseMeta(With(good, "\"format\":2", "\"format\":0")).ok());
  EXPECT_FALSE(ParseMeta(With(good, "\"format\":2", "\"format\":\"2\"")).ok());
  EXPECT_FALSE(ParseMeta(With(good, kUuid, "x")).ok());
  EXPECT_FALSE(ParseMeta(With(good, "\"rack_bits\":2", "\"rack_bits\":17")).ok());
  EXPECT_FALSE(
      ParseMeta(With(good, "\"default_strategy\":\"\"", "\"default_strategy\":\"segment\"")).ok());
  EXPECT_FALSE(ParseMeta(FormatSlotRecord(SomeRecord())).ok());
}

TEST(RecordsTest, UuidsHaveTheStandardForm) {
  SeededEntropy entropy(7);
  const std::string uuid = DrawUuid(entropy);
  EXPECT_TRUE(IsUuid(uuid)) << uuid;
  EXPECT_NE(uuid, DrawUuid(entropy));
  EXPECT_FALSE(IsUuid(""));
  EXPECT_FALSE(IsUuid("0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0fG"));
}

TEST(NonceTest, IsNeverZeroAndReadsBackAsWritten) {
  SeededEntropy entropy(1);
  const Nonce nonce = Nonce::Draw(entropy);
  EXPECT_FALSE(nonce.zero());
  EXPECT_EQ(*Nonce::Parse(nonce.text()), nonce);
  EXPECT_NE(nonce, Nonce::Draw(entropy));
}

TEST(RecordsTest, NumbersEndBelowTheIdsOfUndefinedTags) {
  ClusterMeta meta = SomeMeta();
  EXPECT_EQ(LimitOf(meta).end, INT64_MAX) << "every tag is defined";
  meta.default_strategy = "snowflake";
  EXPECT_EQ(LimitOf(meta).end, 0) << "the date of the first ids is unknown";
  EXPECT_EQ(FormatMeta(meta).find("ids_since_ms"), std::string::npos);
  const Layout layout = Layout::Firn();
  meta.ids_since = layout.epoch() + Milliseconds(1'000);
  EXPECT_EQ(*ParseMeta(FormatMeta(meta)), meta);
  const LedgerLimit limit = LimitOf(meta);
  EXPECT_EQ(limit.end, *layout.Pack({.tick = Tick(1'000), .machine = MachineId(0)}));
  EXPECT_TRUE(limit.CheckEnd(limit.end).ok());
  EXPECT_EQ(limit.CheckEnd(limit.end + 1).code(), Code::kInvalid);
  meta.ids_since = WallMs(1);
  EXPECT_EQ(LimitOf(meta).end, 0) << "before the epoch";
  meta.ids_since = layout.end() + Milliseconds(1);
  EXPECT_EQ(LimitOf(meta).end, *layout.Pack({.tick = layout.last_tick(), .machine = MachineId(0)}));
}

}  // namespace
}  // namespace firn
