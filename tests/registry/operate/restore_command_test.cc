// Tests the printed restore command, an operator's answers, and the documents of servers.

#include "registry/operate/restore_command.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "registry/cluster/reserved.h"
#include "registry/operate/backup.h"
#include "registry/state/hint.h"
#include "registry/state/kept_bounds.h"
#include "registry/state/known_tags.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

TagDefinition Segment(const std::string& name, int64_t high) {
  return {.name = name, .strategy = "segment", .step = 50, .step_max = 400, .high = high};
}

TEST(RestoreCommandTest, QuotesTheCommandForAShell) {
  const RestoreArguments place{
      .registry = "zk://h:2181/firn/shop", .auth_file = "/etc/zk", .from = "/var/lib/firn state"};
  const UnsavedSettings unsaved{"time:31s machine:10 sequence:22", 2, Milliseconds(5'400'000)};
  EXPECT_EQ(ServerRestoreCommand(place, "u", {}),
            "firn restore --registry=zk://h:2181/firn/shop --registry_auth_file=/etc/zk "
            "'--from=/var/lib/firn state' --uuid=u");
  EXPECT_EQ(ServerRestoreCommand(place, "u", unsaved),
            "firn restore --registry=zk://h:2181/firn/shop --registry_auth_file=/etc/zk "
            "'--from=/var/lib/firn state' --uuid=u '--layout=time:31s machine:10 sequence:22' "
            "--rack_bits=2 --set=window=5400000");
}

TEST(RestoreCommandTest, ATagContinuesTwoOfItsLargestRangesAboveTheHighestKnownNumber) {
  EXPECT_EQ(LiftTo(Segment("order", 0), 5'001, 0), 5'801);
  EXPECT_EQ(LiftTo(Segment("order", 0), 5'001, 1'000), 6'001);
  EXPECT_EQ(LiftTo(Segment("last", 0), INT64_MAX - 5, 1'000), INT64_MAX);
}

TEST(RestoreAnswersTest, ATagIsGivenByItsNumbersOrDefinedByItsStrategy) {
  const auto answers = ParseAnswers({"order.high=5000", "a%2Eb.start=7", "day.strategy=dated",
                                     "day.zone=UTC", AnswerOf("x.y", "start", "3")});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(answers->highs.high, (std::map<std::string, int64_t>{{"order", 5'001}}));
  EXPECT_EQ(answers->Find("order"), nullptr) << "its form is unknown";
  ASSERT_NE(answers->Find("a.b"), nullptr);
  EXPECT_EQ(answers->Find("a.b")->tag.start, 7);
  EXPECT_FALSE(answers->Find("a.b")->defined);
  EXPECT_TRUE(answers->Find("day")->defined);
  EXPECT_EQ(answers->Find("x.y")->tag.start, 3);
}

TEST(RestoreAnswersTest, ListsCanBeRepeatedAndOtherKeysCannot) {
  const auto answers = ParseAnswers({"retire=3", "retire=5,6", "reserve=1=x", "reserve=2=y"});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(answers->retired.size(), 3u);
  EXPECT_EQ(answers->reserved->size(), 2u);
  EXPECT_EQ(answers->said, (std::vector<std::string>{"reserve=1=x,2=y", "retire=3,5,6"}));
  EXPECT_EQ(ParseAnswers({"workers=4", "workers=5"}).code(), Code::kInvalid);
  EXPECT_TRUE(ParseAnswers({"workers=4", "workers=4"}).ok());
  EXPECT_TRUE(ParseAnswers({"folders=all"})->all_folders);
  EXPECT_EQ(ParseAnswers({"folders=VALUE"}).code(), Code::kInvalid);
}

constexpr char kKeptUuid[] = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab";
constexpr char kOtherUuid[] = "5f1c2f9e-7d8a-4a53-9d9a-1b6f1a2b3c4d";

// The state folder of two servers of one host.
class StateDocumentTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  void WriteTags(const std::string& stem, const std::string& uuid, int64_t high) {
    KnownTags tags;
    tags.tags["order"].node.tag = Segment("order", high);
    Write(stem + "." + uuid + ".tags", FormatKnownTags(uuid, tags));
  }
  void WriteRoot(const std::string& stem, const std::string& uuid) {
    Write(stem + "." + uuid + ".root",
          FormatRootSettings({.uuid = uuid, .layout = "firn", .rack_bits = 2, .workers = 8}));
  }
  Result<Backup> Read(const std::string& uuid = "") {
    return ReadStateDocument(folder_.path(), uuid);
  }

  TempDir folder_;
};

TEST_F(StateDocumentTest, MergesTheFilesOfAllServersInTheFolder) {
  WriteRoot("firn:7609:1", kKeptUuid);
  WriteTags("firn:7609:1", kKeptUuid, 5'001);
  WriteTags("firn:7610:1", kKeptUuid, 7'001);
  Write("firn:7609:1.properties", FormatHint({.machine = 5,
                                              .slot = {.rack = 1, .worker = 1},
                                              .uuid = kKeptUuid,
                                              .layout = "firn",
                                              .era = Nonce(1, 2),
                                              .last = WallMs(1'700'000'000'000)}));
  Write("firn:7609:1.leases", FormatKeptBounds({.uuid = kKeptUuid,
                                                .bounds = {{.slot = {.rack = 0, .worker = 3},
                                                            .era = Nonce(1, 2),
                                                            .bound = WallMs(1'800'000'000'000)}}}));
  const Result<Backup> document = Read();
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_TRUE(document->composed && document->settings_known && document->tags_known);
  EXPECT_EQ(document->root.workers, 8u);
  EXPECT_EQ(document->Find("order")->tag.high, 7'001);
  const std::vector<std::pair<MachineId, WallMs>> bounds{
      {*RackSplit::Make(Layout::Firn(), 2)->Join(3, 0), WallMs(1'800'000'000'000)},
      {MachineId(5), WallMs(1'700'000'000'000)}};
  for (const auto& bound : bounds) {
    EXPECT_EQ(std::ranges::count(document->bounds, bound), 1) << bound.first.value();
  }
  const Result<Backup> copied = ParseBackup(FormatBackup(*document));
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_TRUE(copied->composed);
  EXPECT_EQ(copied->tags, document->tags);
}

TEST_F(StateDocumentTest, ReportsMissingSettingsAndTags) {
  Write("firn:7609:1.leases", FormatKeptBounds({.uuid = kKeptUuid,
                                                .bounds = {{.slot = {.rack = 0, .worker = 3},
                                                            .era = Nonce(1, 2),
                                                            .bound = WallMs(1'800'000'000'000)}}}));
  const Result<Backup> document = Read(kKeptUuid);
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_FALSE(document->settings_known || document->tags_known);
  EXPECT_EQ(document->reached, std::vector{WallMs(1'800'000'000'000)});
  const Result<Backup> copied = ParseBackup(FormatBackup(*document));
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_FALSE(copied->settings_known || copied->tags_known);
  EXPECT_EQ(copied->reached, document->reached);
}

TEST_F(StateDocumentTest, AnIncompleteListOfTagsIsNotAllTags) {
  KnownTags tags;
  tags.tags["order"].node.tag = Segment("order", 5'001);
  tags.complete = false;
  const std::string name = "firn:7609:1." + std::string(kKeptUuid) + ".tags";
  Write(name, FormatKnownTags(kKeptUuid, tags));
  ASSERT_TRUE(Read().ok()) << Read().status();
  EXPECT_FALSE(Read()->tags_known);
  EXPECT_EQ(Read()->tags.size(), 1u);
  // Earlier versions do not record it.
  tags.complete = true;
  for (size_t i = 1; i < kListedTagsMax; ++i) {
    const std::string tag = Cat("tag", i);
    tags.tags[tag].node.tag = Segment(tag, 1);
  }
  Write(name, FormatKnownTags(kKeptUuid, tags));
  EXPECT_FALSE(Read()->tags_known);
  tags.tags.erase("tag1");
  Write(name, FormatKnownTags(kKeptUuid, tags));
  EXPECT_TRUE(Read()->tags_known);
}

TEST_F(StateDocumentTest, TwoServersMayKnowATagInTwoForms) {
  WriteTags("firn:7609:1", kKeptUuid, 5'001);
  KnownTags others;
  others.tags["order"].node.tag = Segment("order", 7'001);
  others.tags["order"].node.tag.text = "n{id}";
  Write("firn:7610:1." + std::string(kKeptUuid) + ".tags", FormatKnownTags(kKeptUuid, others));
  ASSERT_TRUE(Read().ok()) << Read().status();
  EXPECT_EQ(Read()->DefinitionsOf("order").size(), 2u);
  EXPECT_EQ(Read()->Find("order")->tag.high, 7'001);
}

TEST_F(StateDocumentTest, ALaterReadingOfAFolderIsTheSameDocument) {
  WriteTags("firn:7609:1", kKeptUuid, 5'001);
  const std::string before = Read()->checksum;
  WriteTags("firn:7609:1", kKeptUuid, 7'001);
  EXPECT_EQ(Read()->checksum, before);
  // A document has the age of its tags, although other files were written later.
  const WallMs written = Read()->taken;
  const auto tags = folder_ / ("firn:7609:1." + std::string(kKeptUuid) + ".tags");
  std::filesystem::last_write_time(tags,
                                   std::filesystem::last_write_time(tags) - std::chrono::hours(2));
  WriteRoot("firn:7609:1", kKeptUuid);
  EXPECT_EQ(Read()->taken, written - Milliseconds(7'200'000));
  TempDir copy;
  std::filesystem::copy(folder_.path(), copy.path(), std::filesystem::copy_options::recursive);
  EXPECT_NE(ReadStateDocument(copy.path(), kKeptUuid)->checksum, before);
  // A server's answers at different times also count as one document.
  Backup returned = *Read();
  for (const WallMs taken : {WallMs(1), WallMs(2)}) {
    returned.taken = taken;
    EXPECT_EQ(ParseBackup(FormatBackup(returned))->checksum, before);
  }
}

TEST_F(StateDocumentTest, RefusesSeveralClustersNoneAndDamagedFiles) {
  EXPECT_EQ(Read().code(), Code::kNotFound);
  EXPECT_EQ(ReadStateDocument(folder_ / "missing", "").code(), Code::kNotFound);
  WriteTags("firn:7609:1", kKeptUuid, 5'001);
  WriteTags("firn:7609:1", kOtherUuid, 5'001);
  const Status several = Read().status();
  EXPECT_EQ(several.code(), Code::kConflict);
  EXPECT_NE(several.message().find(kOtherUuid), std::string::npos) << several;
  EXPECT_TRUE(Read(kOtherUuid).ok());
  Write("firn:7610:1." + std::string(kOtherUuid) + ".tags", "firn tags 2 half");
  Write("application.properties", "a = b");
  Write("firn:7610:1.leases", "half");
  std::filesystem::create_symlink("/missing", folder_ / "firn:7611:1.properties");
  EXPECT_TRUE(Read(kKeptUuid).ok()) << "of another cluster, or of none that is named";
  Write("firn:7610:1." + std::string(kKeptUuid) + ".tags", "firn tags 2 half");
  const Status damaged = Read(kKeptUuid).status();
  EXPECT_EQ(damaged.code(), Code::kCorrupt);
  EXPECT_NE(damaged.message().find("firn:7610:1."), std::string::npos) << damaged;
}

TEST(RootSettingsTest, ReadsBackAsWritten) {
  RootSettings settings{.uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab",
                        .layout = "firn",
                        .rack_bits = 2,
                        .workers = 256,
                        .default_strategy = "snowflake",
                        .ids_since = WallMs(16),
                        .lease_share = 25,
                        .era = Nonce(1, 2),
                        .version = -5,
                        .floor = WallMs(17),
                        .era_began = WallMs(18)};
  settings.Add(MachineId(0), {.owner = "reserved: x, y=%", .retired = true});
  settings.Add(MachineId(1), {.owner = "reserved: x, y=%", .retired = true});
  settings.Add(MachineId(2), {.owner = "firn.7609", .retired = true});
  settings.Add(MachineId(3), {.owner = "firn.7609"});
  settings.Add(MachineId(4), {.owner = "reserved: x, y=%", .retired = true});
  EXPECT_EQ(settings.reserved.size(), 2u);
  EXPECT_EQ(settings.retired, std::vector{MachineId(2)});
  const auto read = ParseRootSettings(FormatRootSettings(settings));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, settings);
  for (const char* bad : {"1", "1=", "2-1=x", "x=y", "1=%", ",", "1=a,,2=b"}) {
    EXPECT_EQ(ParseReserved(bad).code(), Code::kInvalid) << bad;
  }
}

TEST(RootSettingsTest, RefusesReservationsThatNoRecordCanHold) {
  const RackSplit split = *RackSplit::Make(Layout::Firn(), 2);
  const auto check = [&](uint32_t last, size_t name_bytes) {
    return CheckReserved({{MachineId(0), MachineId(last), std::string(name_bytes, 'x')}}, split);
  };
  EXPECT_TRUE(check(1'023, 200).ok());
  EXPECT_EQ(check(1'024, 200).code(), Code::kInvalid);
  EXPECT_EQ(check(1'023, 201).code(), Code::kInvalid);
}

// After a restore, ids stay ahead of the wall clock.
TEST(RootSettingsTest, IdsAreAsFarAheadAsTheyStartedAfterTheRestore) {
  EXPECT_EQ(RootSettings().IdsBy(WallMs(5'000)), WallMs());
  const RootSettings restored{.floor = WallMs(4'000), .era_began = WallMs(1'000)};
  EXPECT_EQ(restored.IdsBy(WallMs(6'000)), WallMs(9'000));
  EXPECT_EQ(restored.IdsBy(WallMs(500)), WallMs(4'000));
}

}  // namespace
}  // namespace firn
