// Tests whole runs of a restore, with options and the memory of earlier runs.

#include "registry/operate/restore/restore_run.h"

#include <functional>
#include <string>
#include <vector>

#include "registry/claim/claim_options.h"
#include "registry/operate/backup.h"
#include "tests/registry/operate/restore_fixture.h"

namespace firn {
namespace {

using Kind = RestoreOutcome::Kind;
using Flags = std::vector<std::string>;

class RestoreRunTest : public RestoreTest {
 protected:
  static RestoreOptions With(const Flags& flags) {
    RestoreOptions options;
    const Status set = SetFlags(flags, options);
    EXPECT_TRUE(set.ok()) << set;
    return options;
  }
  Result<RestoreOutcome> Run(RestoreOptions& options) {
    Result<RestoreOutcome> outcome = Invalid("not run");
    AsOperator([&](BlockingCoordinator& registry) {
      const RestoreContext context{.clock = clock_,
                                   .entropy = entropy_,
                                   .command = {.registry = "r", .host = "h"},
                                   .await_reports = [this](bool) { waits_(); },
                                   .on_recall = [this](const RestoreMemory&) { ++recalled_; }};
      outcome = RunRestore(registry, context, options);
    });
    return outcome;
  }
  // Interrupts a run right after it has frozen the cluster.
  void Interrupt(RestoreOptions options) {
    multis_left_ = 1;
    EXPECT_FALSE(Run(options).ok());
    multis_left_.reset();
    EXPECT_TRUE(Meta().meta.frozen);
  }
  Backup Document() {
    Result<Backup> backup = Invalid("not read");
    AsOperator([&](BlockingCoordinator& registry) {
      backup = ReadBackup(registry, "/firn/r", clock_.Wall());
    });
    return ParseBackup(FormatBackup(backup.value())).value();
  }

  void Announce() {
    const std::string node = "/" + ProviderNodeName({.address = "h:1"});
    Write1(Write::Create(std::string(kServicePath), "", Lifetime::kPersistent));
    Write1(Write::Create(std::string(kProvidersPath), "", Lifetime::kPersistent));
    Write1(
        Write::Create(std::string(kProvidersPath) + node, FormatReport({}), Lifetime::kPersistent));
  }

  int recalled_ = 0;
  std::function<void()> waits_ = [] {};
};

TEST_F(RestoreRunTest, ContinuesWithTheAnswersOfAnUnfinishedRun) {
  Interrupt(With({"--skew_max_ms=20000", "--set=retire=2"}));
  RestoreOptions options;
  const auto outcome = Run(options);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->kind, Kind::kRestored);
  EXPECT_TRUE(RecordOf(2).retired);
  EXPECT_EQ(options.skew_max, Milliseconds(20'000));
  EXPECT_EQ(options.flags, Flags({"--skew_max_ms=20000", "--set=retire=2"}));
  EXPECT_EQ(recalled_, 1);
  EXPECT_FALSE(Meta().meta.frozen);
}

TEST_F(RestoreRunTest, RefusesARunWithoutTheDocumentsOfAnUnfinishedRun) {
  RestoreOptions first;
  ASSERT_TRUE(AddDocument("/b/backup.json", Document(), first).ok());
  Interrupt(first);
  RestoreOptions without;
  const auto refused = Run(without);
  EXPECT_EQ(refused.code(), Code::kConflict) << refused.status();
  EXPECT_NE(refused.status().message().find("/b/backup.json"), std::string::npos);
  EXPECT_TRUE(Meta().meta.frozen);
  RestoreOptions again = With({"--again=true"});
  EXPECT_EQ(Run(again).value().kind, Kind::kRestored);
}

TEST_F(RestoreRunTest, ChangesNothingInADryRunOrWithoutNewFacts) {
  RestoreOptions dry;
  dry.dry_run = true;
  const uint64_t before = tree_.digest();
  EXPECT_EQ(Run(dry).value().kind, Kind::kPlanned);
  EXPECT_EQ(tree_.digest(), before);
  RestoreOptions options;
  EXPECT_EQ(Run(options).value().kind, Kind::kRestored);
  Announce();
  const WallMs floor = Meta().meta.floor;
  EXPECT_EQ(Run(options).value().kind, Kind::kNothingNew);
  EXPECT_EQ(Meta().meta.floor, floor);
  RestoreOptions larger = With({"--tag_gap=5000"});
  EXPECT_EQ(Run(larger).value().kind, Kind::kRestored) << "nothing shows the gap of a tag";
}

// The registry was put back to a state after the restore, while all servers were stopped.
TEST_F(RestoreRunTest, RestoresAgainIfNoServerWouldNoticeALoss) {
  RestoreOptions options;
  EXPECT_EQ(Run(options).value().kind, Kind::kRestored);
  const WallMs floor = Meta().meta.floor;
  EXPECT_EQ(Run(options).value().kind, Kind::kRestored);
  EXPECT_GT(Meta().meta.floor, floor);
  Announce();
  EXPECT_EQ(Run(options).value().kind, Kind::kNothingNew);
  waits_ = [this] {
    Write1(Write::Erase(std::string(kProvidersPath) + "/" + ProviderNodeName({.address = "h:1"}),
                        Write::kAnyVersion));
  };
  EXPECT_EQ(Run(options).value().kind, Kind::kRestored) << "the session had ended before";
}

// After many restores, ids are three days ahead of all clocks, and only the operator knows it.
TEST_F(RestoreRunTest, AnAnswerMayRaiseTheFloorByMoreThanADay) {
  const WallMs ahead = kRestoreTime + 3 * kPoisonAhead;
  RestoreOptions options = With({"--set=floor=" + std::to_string(ahead.ms())});
  const auto outcome = Run(options);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(outcome->report.ignored.empty());
  EXPECT_GE(Meta().meta.floor, ahead + 3 * kWindow);
  Announce();
  EXPECT_EQ(Run(options).value().kind, Kind::kNothingNew);
  const uint64_t before = tree_.digest();
  RestoreOptions far = With({"--set=floor=" + std::to_string((ahead + 30 * kPoisonAhead).ms())});
  const auto refused = Run(far);
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_NE(refused.status().message().find("more than 30 days ahead"), std::string::npos);
  EXPECT_EQ(tree_.digest(), before);
}

TEST_F(RestoreRunTest, IgnoresAnImplausibleFloorOfAnUnfinishedRun) {
  const WallMs far = kRestoreTime + 40 * kPoisonAhead;
  RestoreFacts facts = Facts();
  facts.memory.flags = {"--set=floor=" + std::to_string(far.ms())};
  AsOperator([&](BlockingCoordinator& registry) {
    ASSERT_TRUE(FreezeForRestore(registry, facts, entropy_).ok());
  });
  RestoreOptions options;
  const auto outcome = Run(options);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->report.ignored.size(), 1u);
  EXPECT_LT(Meta().meta.floor, far);
}

TEST(RestoreOptionsTest, KeepsTheDefaultsOfOtherFlagsAndNamesInvalidOnes) {
  RestoreOptions options{.layout = "other", .skew_max = Milliseconds(5)};
  ASSERT_TRUE(SetFlags({"--ids_since=2026-11-25", "--set=order.start=7"}, options).ok());
  EXPECT_EQ(options.flags, Flags({"--ids_since=2026-11-25T00:00:00.000Z", "--set=order.start=7"}));
  EXPECT_EQ(options.layout, "other");
  EXPECT_EQ(options.skew_max, Milliseconds(5));
  EXPECT_EQ(options.call.ledgers.starts.at("order"), 7);
  EXPECT_TRUE(options.IsGiven("ids_since"));
  EXPECT_FALSE(options.IsGiven("layout"));
  ASSERT_TRUE(SetFlags({}, options).ok());
  EXPECT_TRUE(options.call.ledgers.starts.empty());
  for (const char* flag : {"--sett=x", "--skew_max_ms=-1", "--skew_max_ms=x", "--tag_gap=-1",
                           "--ids_since=x", "--uuid=x", "--set=x", "uuid=x"}) {
    EXPECT_EQ(SetFlags({flag}, options).code(), Code::kInvalid) << flag;
  }
}

}  // namespace
}  // namespace firn
