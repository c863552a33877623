#include "server/store/redis/tiered_hash.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "tests/support/database/redis.h"

namespace firn {
namespace {

using testing::HasSubstr;

constexpr const char* kOurs = "00000000-0000-4000-8000-000000000001";
constexpr const char* kTheirs = "00000000-0000-4000-8000-000000000002";
constexpr const char* kKey = "firn:order:tiered";

class TieredHashTest : public testing::Test {
 protected:
  void SetUp() override {
    server_ = StartServer();
    ASSERT_NE(server_, nullptr);
    hash_ = Open(*server_);
  }

  static std::unique_ptr<Redis> StartServer() {
    auto started = Redis::Start({.append_only = true, .sync_always = true});
    EXPECT_TRUE(started.ok()) << started.status();
    return started.ok() ? *std::move(started) : nullptr;
  }
  static std::unique_ptr<TieredHash> Open(const Redis& server) {
    TieredHash::Options options{
        .place = {.address = {"127.0.0.1", static_cast<uint16_t>(server.port())},
                  .time_limit = Milliseconds(30'000)},
        .backoff = {Milliseconds(1), Milliseconds(10)}};
    return std::make_unique<TieredHash>(std::move(options), SystemClock(), SystemEntropy());
  }

  // Repeats until the server is reached.
  static Result<TieredHash::Taken> Take(TieredHash& hash, int64_t size = 10) {
    Result<TieredHash::Taken> taken = Unavailable("");
    Eventually(Milliseconds(60'000), [&] {
      const auto fenced = hash.Fence(Tag(), kOurs, 0);
      taken = fenced.ok() ? Unavailable("") : fenced.status();
      if (fenced.ok()) taken = hash.Take(Tag(), kOurs, size, {.connection = fenced->connection});
      return taken.ok() ? !taken->unfenced : taken.code() == Code::kCorrupt;
    });
    return taken;
  }
  static Range Numbers(TieredHash& hash, int64_t size = 10) {
    const auto taken = Take(hash, size);
    EXPECT_TRUE(taken.ok()) << taken.status();
    return taken.value_or({}).range;
  }
  static TagDefinition Tag() { return {.name = "order", .strategy = "segment"}; }
  Status Fill(int64_t begin, int64_t end) {
    return hash_->Fill(Tag(), kOurs, {begin, end}, 1).status();
  }
  Result<TieredHash::Fenced> Fence(int64_t least) { return hash_->Fence(Tag(), kOurs, least); }
  void Edit(const std::vector<std::string>& fields) {
    std::vector<std::string> words{"HSET", kKey};
    words.insert(words.end(), fields.begin(), fields.end());
    ASSERT_TRUE(server_->Run(words).ok());
  }

  std::unique_ptr<Redis> server_;
  std::unique_ptr<TieredHash> hash_;
  const TieredHash::Known known_{.connection = 1};  // the connection before any restart of the
                                                    // server
};

TEST_F(TieredHashTest, OneServerBringsTheSegmentAndAllTakeFromIt) {
  const auto other = Open(*server_);
  EXPECT_TRUE(Take(*hash_).value_or({}).bring);
  const auto waiting = Take(*other);
  ASSERT_TRUE(waiting.ok());
  EXPECT_TRUE(waiting.value_or({}).range.empty());
  ASSERT_EQ(Fill(1, 26), Status());
  EXPECT_EQ(Numbers(*hash_), (Range{1, 11}));
  EXPECT_EQ(Numbers(*other), (Range{11, 21}));
  EXPECT_EQ(Numbers(*hash_), (Range{21, 26}));
  EXPECT_TRUE(Numbers(*other).empty());
}

TEST_F(TieredHashTest, RequestsTheNextSegmentEarlyAndContinuesWithoutAGap) {
  ASSERT_EQ(Fill(1, 101), Status());
  EXPECT_FALSE(Take(*hash_, 9).value_or({}).bring);
  const auto low = Take(*hash_, 1);
  EXPECT_TRUE(low.value_or({}).bring);
  EXPECT_EQ(low.value_or({}).step, 100);
  ASSERT_EQ(Fill(101, 301), Status());
  EXPECT_EQ(Fill(301, 401).code(), Code::kConflict);  // there are already two
  EXPECT_EQ(Numbers(*hash_, 1000), (Range{11, 101}));
  EXPECT_EQ(Numbers(*hash_, 1000), (Range{101, 301}));
}

TEST_F(TieredHashTest, RefusesASegmentBelowAnother) {
  ASSERT_EQ(Fill(100, 200), Status());
  EXPECT_EQ(Fill(50, 90).code(), Code::kConflict);
  EXPECT_EQ(Fill(199, 300).code(), Code::kConflict);
  ASSERT_EQ(Fill(200, 300), Status());
  EXPECT_EQ(Fill(250, 400).code(), Code::kConflict);
  EXPECT_EQ(Numbers(*hash_, 1000), (Range{100, 200}));
}

TEST_F(TieredHashTest, DiscardsTheRestAfterARestart) {
  ASSERT_EQ(Fill(1, 101), Status());
  ASSERT_EQ(Numbers(*hash_), (Range{1, 11}));
  server_->Kill();
  ASSERT_EQ(server_->Restart(), Status());
  const auto taken = Take(*hash_);
  EXPECT_TRUE(taken.value_or({}).range.empty());
  EXPECT_TRUE(taken.value_or({}).bring);
  EXPECT_EQ(hash_->Fill(Tag(), kOurs, {101, 201}, 101)->thrown_away,
            90);  // the numbers that were lost
  EXPECT_EQ(Numbers(*hash_), (Range{101, 111}));
}

TEST_F(TieredHashTest, DiscardsTheRestOnAPromotedReplicaAndTheOldPrimary) {
  const auto replica = StartServer();
  ASSERT_EQ(replica->Follow(*server_), Status());
  ASSERT_EQ(Fill(1, 101), Status());
  ASSERT_EQ(replica->Follow(*server_), Status());  // now has the segment
  ASSERT_EQ(Numbers(*hash_), (Range{1, 11}));
  ASSERT_EQ(replica->Promote(), Status());
  const auto promoted = Open(*replica);
  EXPECT_TRUE(Numbers(*promoted).empty());
  ASSERT_EQ(promoted->Fill(Tag(), kOurs, {101, 201}, 101).status(), Status());
  EXPECT_EQ(Numbers(*promoted), (Range{101, 111}));

  // Back to the first server, which was never restarted.
  ASSERT_EQ(server_->Follow(*replica), Status());
  ASSERT_EQ(server_->Promote(), Status());
  EXPECT_TRUE(Numbers(*hash_).empty());
  ASSERT_EQ(Fill(201, 301), Status());
  EXPECT_EQ(Numbers(*hash_), (Range{201, 211}));
}

TEST_F(TieredHashTest, DiscardsTheRestOnAPrimaryThatWasAReplicaBriefly) {
  ASSERT_EQ(Fill(1, 101), Status());
  ASSERT_EQ(Numbers(*hash_), (Range{1, 11}));
  ASSERT_TRUE(server_->Run({"REPLICAOF", "127.0.0.1", std::to_string(FreePort())}).ok());
  ASSERT_EQ(server_->Promote(), Status());
  EXPECT_TRUE(Numbers(*hash_).empty());
}

TEST_F(TieredHashTest, RefusesAnEditedHash) {
  const std::vector<std::string> kEdits[] = {
      {"cur", "5"}, {"max", "500"}, {"left", "-3"}, {"cur", "x"}, {"next", "7", "next_max", "9"}};
  int64_t begin = 1;
  for (const auto& edit : kEdits) {
    ASSERT_EQ(Fill(begin, begin + 100), Status());
    ASSERT_EQ(Numbers(*hash_), (Range{begin, begin + 10}));
    Edit(edit);
    const auto refused = Take(*hash_);
    EXPECT_EQ(refused.code(), Code::kCorrupt) << edit[0];
    EXPECT_THAT(refused.status().message(), HasSubstr("was edited"));
    EXPECT_EQ(Fill(begin + 100, begin + 200).code(), Code::kCorrupt);
    ASSERT_TRUE(server_->Run({"DEL", kKey}).ok());
    begin += 200;
  }
}

TEST_F(TieredHashTest, DoesNotReadOrWriteAHashOfAnotherCluster) {
  ASSERT_EQ(Fill(1, 101), Status());
  ASSERT_EQ(Numbers(*hash_), (Range{1, 11}));
  EXPECT_EQ(hash_->Take(Tag(), kTheirs, 10, known_).code(), Code::kInvalid);
  EXPECT_EQ(hash_->Fill(Tag(), kTheirs, {101, 201}, 101).code(), Code::kInvalid);
  EXPECT_EQ(hash_->Fence(Tag(), kTheirs, TieredHash::kEverything).code(), Code::kInvalid);
  EXPECT_EQ(Numbers(*hash_), (Range{11, 21}));
  // Not after a restart either, although the rest is no longer usable.
  server_->Kill();
  ASSERT_EQ(server_->Restart(), Status());
  EXPECT_TRUE(Numbers(*hash_).empty());
  const auto refused = hash_->Fill(Tag(), kTheirs, {101, 201}, 101);
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_THAT(refused.status().message(), HasSubstr(kOurs));
}

TEST_F(TieredHashTest, RefusesAHashWithoutACluster) {
  ASSERT_EQ(Fill(1, 101), Status());
  ASSERT_TRUE(server_->Run({"HDEL", kKey, "cluster"}).ok());
  EXPECT_EQ(Take(*hash_).code(), Code::kCorrupt);
  EXPECT_EQ(Fill(101, 201).code(), Code::kCorrupt);
}

TEST_F(TieredHashTest, GivesOutNothingThatWasCleared) {
  const auto other = Open(*server_);
  ASSERT_EQ(Fill(1, 101), Status());
  ASSERT_EQ(Numbers(*hash_, 95), (Range{1, 96}));
  ASSERT_EQ(Fill(101, 201), Status());
  ASSERT_EQ(Fence(TieredHash::kEverything).status(), Status());
  const auto taken = Take(*other);
  EXPECT_TRUE(taken.value_or({}).range.empty());
  EXPECT_TRUE(taken.value_or({}).bring);
  EXPECT_EQ(hash_->Fill(Tag(), kOurs, {201, 301}, 201)->thrown_away, 105);
  EXPECT_EQ(Numbers(*other), (Range{201, 211}));
}

TEST_F(TieredHashTest, FenceClearsOnlyAHashThatEndsBelowTheLedger) {
  ASSERT_EQ(Fill(1, 101), Status());
  ASSERT_EQ(Numbers(*hash_, 5), (Range{1, 6}));
  EXPECT_EQ(Fence(101)->cleared, std::nullopt);
  EXPECT_EQ(Numbers(*hash_, 4), (Range{6, 10})) << "too few for the next segment to be brought";
  EXPECT_EQ(Fence(102)->cleared, 101);
  EXPECT_EQ(Fence(103)->cleared, std::nullopt) << "it is cleared already";
  const auto taken = Take(*hash_);
  EXPECT_TRUE(taken.value_or({}).range.empty());
  EXPECT_TRUE(taken.value_or({}).bring);
}

TEST_F(TieredHashTest, FenceClearsNothingWhileAServerBringsASegment) {
  ASSERT_EQ(Fill(1, 101), Status());
  ASSERT_TRUE(Take(*hash_, 50).value_or({}).bring);
  EXPECT_EQ(Fence(201).code(), Code::kConflict) << "the ledger has moved, the hash has not";
  ASSERT_EQ(Fill(101, 201), Status());
  EXPECT_EQ(Fence(201)->cleared, std::nullopt);
  EXPECT_EQ(Numbers(*hash_), (Range{51, 61}));
}

TEST_F(TieredHashTest, NothingIsTakenOnAConnectionThatWasNotFenced) {
  ASSERT_EQ(Fill(1, 101), Status());
  const auto other = Open(*server_);
  const auto taken = other->Take(Tag(), kOurs, 10, {});
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->unfenced);
  EXPECT_TRUE(taken->range.empty());
  EXPECT_EQ(Numbers(*hash_), (Range{1, 11}));
}

TEST_F(TieredHashTest, NothingIsTakenBelowTheCallersLastNumber) {
  ASSERT_EQ(Fill(1, 101), Status());
  const auto back = hash_->Take(Tag(), kOurs, 10, {.connection = 1, .issued = 31});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->back_at, 1);
  EXPECT_TRUE(back->range.empty());
  EXPECT_EQ(Numbers(*hash_), (Range{1, 11}));
}

// Between the two, other servers issued numbers that this server does not know.
TEST_F(TieredHashTest, ASegmentReplacesARestThatEndsBelowTheLedger) {
  ASSERT_EQ(Fill(1, 101), Status());
  ASSERT_EQ(Numbers(*hash_), (Range{1, 11}));
  EXPECT_EQ(hash_->Fill(Tag(), kOurs, {300, 400}, 200)->thrown_away, 90);
  EXPECT_EQ(Numbers(*hash_), (Range{300, 310}));
}

TEST_F(TieredHashTest, RefusesAHashAboveTheLedger) {
  ASSERT_EQ(Fill(1, 101), Status());
  ASSERT_EQ(Fence(TieredHash::kEverything).status(), Status());
  const auto refused = hash_->Fill(Tag(), kOurs, {50, 150}, 50);
  EXPECT_EQ(refused.code(), Code::kCorrupt);
  EXPECT_THAT(refused.status().message(), HasSubstr("up to 101"));
  EXPECT_EQ(Fill(101, 201), Status());
}

TEST_F(TieredHashTest, SkipsNumbersBelowTheStart) {
  const auto from = [&](int64_t start) {
    TagDefinition tag = Tag();
    tag.start = start;
    const auto taken = hash_->Take(tag, kOurs, 10, known_);
    EXPECT_TRUE(taken.ok()) << taken.status();
    return taken.value_or({}).range;
  };
  ASSERT_EQ(Fill(1, 101), Status());
  EXPECT_EQ(from(1), (Range{1, 11}));
  EXPECT_EQ(from(95), (Range{95, 101}));
  ASSERT_EQ(Fill(101, 201), Status());
  EXPECT_EQ(from(101), (Range{101, 111}));
  ASSERT_EQ(Fill(201, 301), Status());
  EXPECT_EQ(from(250), (Range{250, 260}));
  EXPECT_EQ(from(301), Range());
  EXPECT_EQ(from(kRangeEnd), Range());
}

TEST_F(TieredHashTest, RefusesASegmentBeyondTheExactNumbersOfScripts) {
  const int64_t end = TieredHash::kNumbersEnd;
  EXPECT_EQ(Fill(end - 10, end + 1).code(), Code::kExhausted);
  ASSERT_EQ(Fill(end - 15, end), Status());
  EXPECT_EQ(Numbers(*hash_), (Range{end - 15, end - 5}));
  EXPECT_EQ(Numbers(*hash_), (Range{end - 5, end}));
}

TEST_F(TieredHashTest, DoesNotGiveOutASegmentOfAnotherForm) {
  ASSERT_EQ(Fill(1, 101), Status());
  TagDefinition other = Tag();
  other.text = "{id:09}";
  const auto taken = hash_->Take(other, kOurs, 10, known_);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken.value_or({}).range.empty());
  EXPECT_EQ(Numbers(*hash_), (Range{1, 11})) << "callers with its form still get numbers";
  EXPECT_EQ(hash_->Fill(other, kOurs, {101, 201}, 101)->thrown_away, 90) << "the rest is lost";
  EXPECT_TRUE(Numbers(*hash_).empty());
}

}  // namespace
}  // namespace firn
