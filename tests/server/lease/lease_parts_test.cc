#include <gtest/gtest.h>

#include "registry/state/kept_bounds.h"
#include "server/lease/kept_lease.h"
#include "server/lease/lease_bounds.h"
#include "server/lease/lease_id.h"
#include "server/lease/lease_turns.h"

namespace firn {
namespace {

TEST(LeaseIdTest, NamesItsServer) {
  SeededEntropy entropy(1);
  for (const char* server : {"10.0.0.7:7609", "[::1]:7609", "id-1.example:7609"}) {
    const std::string id = DrawLeaseId(entropy, server);
    const Result<std::string> named = ServerOfLease(id);
    ASSERT_TRUE(named.ok()) << named.status();
    EXPECT_EQ(*named, server);
    EXPECT_NE(id, DrawLeaseId(entropy, server));
  }
}

TEST(LeaseIdTest, RefusesOtherTexts) {
  const std::string secret(32, 'a');
  const std::string all[] = {"",
                             secret,
                             secret + ".",
                             secret + ".3",
                             secret + ":31",
                             secret + ".0a",
                             secret + ".3A",
                             secret + "." + std::string(602, '3')};
  for (const std::string& id : all) EXPECT_FALSE(ServerOfLease(id).ok()) << id;
}

TEST(LeaseTurnsTest, DistinguishesSuccessorRepetitionAndCopy) {
  using Kind = LeaseTurns::Kind;
  LeaseTurns turns;
  EXPECT_EQ(turns.Judge("a", "", WallMs(9'000)), Kind::kNext);
  turns.Accept("a", WallMs(1));
  EXPECT_EQ(turns.Judge("a", "", WallMs(9'000)), Kind::kRepeated);
  EXPECT_EQ(turns.Judge("b", "", WallMs(9'000)), Kind::kCopied);
  EXPECT_EQ(turns.Judge("b", "a", WallMs(9'000)), Kind::kNext);
  turns.Accept("b", WallMs(2));
  EXPECT_EQ(turns.Judge("a", "", WallMs(9'000)), Kind::kOutdated);
  EXPECT_EQ(turns.Judge("c", "a", WallMs(9'000)), Kind::kCopied);
}

TEST(LeaseTurnsTest, RemembersAnEarlierTurnUntilTheClockOfItsSuccessorIsRefused) {
  using Kind = LeaseTurns::Kind;
  LeaseTurns turns;
  turns.Accept("a", WallMs(1'000));
  turns.Accept("b", WallMs(2'000));
  turns.Accept("c", WallMs(1'500));  // the program's clock was set back
  turns.Forget(WallMs(2'000));
  EXPECT_EQ(turns.Judge("a", "", WallMs(9'000)), Kind::kOutdated);
  EXPECT_EQ(turns.Judge("b", "a", WallMs(9'000)), Kind::kOutdated);
  turns.Forget(WallMs(2'001));
  EXPECT_EQ(turns.remembered(), 0u);
  EXPECT_EQ(turns.Judge("c", "b", WallMs(9'000)), Kind::kRepeated);
}

// After a crash the last turn is unknown. The first request is accepted, and an older request does
// not end the lease.
TEST(LeaseTurnsTest, AcceptsAnyTurnOnceIfTheLastOneIsUnknown) {
  using Kind = LeaseTurns::Kind;
  LeaseTurns turns = LeaseTurns::Resumed("", WallMs(0));
  EXPECT_EQ(turns.Judge("c", "b", WallMs(3'000)), Kind::kNext);
  turns.Accept("c", WallMs(3'000));
  EXPECT_EQ(turns.Judge("c", "b", WallMs(3'000)), Kind::kRepeated);
  EXPECT_EQ(turns.Judge("b", "a", WallMs(2'000)), Kind::kOutdated);
  EXPECT_EQ(turns.Judge("d", "b", WallMs(3'500)), Kind::kCopied);
  EXPECT_EQ(turns.Judge("d", "c", WallMs(4'000)), Kind::kNext);
  turns = LeaseTurns::Resumed("c", WallMs(3'000));
  EXPECT_EQ(turns.Judge("d", "b", WallMs(4'000)), Kind::kCopied);
  turns = LeaseTurns::Resumed("c", WallMs(5'000));
  EXPECT_EQ(turns.Judge("d", "b", WallMs(6'000)), Kind::kCopied) << "the last one is known";
  EXPECT_EQ(turns.Judge("d", "c", WallMs(4'000)), Kind::kNext);
}

// Turn b was answered before the crash at 3'000, and arrives again before turn d.
TEST(LeaseTurnsTest, ALateDuplicateFromBeforeACrashEndsNothing) {
  using Kind = LeaseTurns::Kind;
  LeaseTurns turns = LeaseTurns::Resumed("", WallMs(3'000));
  EXPECT_EQ(turns.Judge("b", "a", WallMs(2'999)), Kind::kEarly);
  EXPECT_EQ(turns.Judge("d", "c", WallMs(3'000)), Kind::kNext);
  turns.Accept("d", WallMs(3'000));
  EXPECT_EQ(turns.Judge("b", "a", WallMs(2'999)), Kind::kOutdated);
  EXPECT_EQ(turns.Judge("e", "c", WallMs(5'000)), Kind::kCopied);
}

// A clean stop stores only the last turn.
TEST(LeaseTurnsTest, ALateDuplicateFromBeforeAStopEndsNothing) {
  using Kind = LeaseTurns::Kind;
  LeaseTurns turns = LeaseTurns::Resumed("c", WallMs(3'000));
  EXPECT_EQ(turns.Judge("b", "a", WallMs(2'999)), Kind::kOutdated);
  turns.Accept("d", WallMs(4'000));
  EXPECT_EQ(turns.Judge("b", "a", WallMs(2'999)), Kind::kOutdated);
  EXPECT_EQ(turns.Judge("e", "c", WallMs(5'000)), Kind::kCopied);
}

TEST(KeptLeaseTest, ReadsBackAsWritten) {
  const KeptLease lease{.number = 7,
                        .id = "ab.cd",
                        .name = "shop:1",
                        .client = "CN=a client",
                        .meta_version = 4,
                        .base = WallMs(5),
                        .until = Tick(6),
                        .turn = "0123",
                        .turn_clock = WallMs(8),
                        .lowered = true};
  EXPECT_EQ(ParseKeptLease(FormatKeptLease(lease)), lease);
  KeptLease bare = lease;
  bare.lowered = false;
  bare.client.clear();
  bare.turn.clear();
  EXPECT_EQ(ParseKeptLease(FormatKeptLease(bare)), bare);
  bare.client = "a\nb";
  EXPECT_EQ(FormatKeptLease(bare), "") << "one line";
  for (const char* text :
       {"", "7", "7 ab.cd x 5 6 - 8 - n ", "7 ab.cd 4 5 6 - 8 - n", "7 ab.cd 4 5 6 - 8 n n "}) {
    EXPECT_FALSE(ParseKeptLease(text)) << text;
  }
}

// Completes each write at once.
class EagerMemory final : public LeaseMemory {
 public:
  void Keep(std::string, Kept done) override { done({}); }
};

TEST(LeaseBoundsTest, CoversOnlyTheSameRecordOfTheSameCluster) {
  EagerMemory memory;
  LeaseBounds bounds(memory, {}, "boot");
  const KeptBound bound{{0, 5}, Nonce(1, 2), 77, WallMs(10'000)};
  bounds.Keep("a", bound);
  EXPECT_FALSE(bounds.Covers("a", bound)) << "not written yet";
  bounds.Tick(BootMs(1), WallMs(1'000), Milliseconds(0));
  EXPECT_TRUE(bounds.Covers("a", bound));
  EXPECT_FALSE(bounds.Covers("b", bound));
  KeptBound other = bound;
  other.created_zxid = 78;
  EXPECT_FALSE(bounds.Covers("a", other));
  other = bound;
  other.era = Nonce(1, 3);
  EXPECT_FALSE(bounds.Covers("a", other));
  other = bound;
  other.slot.worker = 6;
  bounds.Keep("b", other);
  bounds.Tick(BootMs(1'000), WallMs(1'000), Milliseconds(0));
  EXPECT_TRUE(bounds.Covers("b", other));
  EXPECT_FALSE(bounds.Covers("b", bound)) << "it was another cluster's";
}

TEST(KeptBoundsTest, ReadsBackAsWritten) {
  KeptBounds kept{
      .uuid = "6f1b",
      .boot = "b-1",
      .bounds = {{{0, 5}, Nonce(1, 2), 77, WallMs(1'000)},
                 {{3, 9}, Nonce(3, 4), 78, WallMs(2'000), Nonce(5, 6), -7},
                 {{3, 8}, Nonce(3, 4), 79, WallMs(2'000), Nonce(5, 7), 8, "7 a lease"}}};
  const std::string text = FormatKeptBounds(kept);
  const Result<KeptBounds> read = ParseKeptBounds(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, kept);
  EXPECT_EQ(kept.highest(), WallMs(2'000));
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_FALSE(ParseKeptBounds(text.substr(0, bytes)).ok()) << bytes;
  }
  EXPECT_EQ(*ParseKeptBounds(FormatKeptBounds({})), KeptBounds());
}

}  // namespace
}  // namespace firn
