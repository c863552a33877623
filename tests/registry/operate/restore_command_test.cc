#include "registry/operate/restore_command.h"

#include <string>

#include <gtest/gtest.h>

namespace firn {
namespace {

TagDefinition Segment(const std::string& name, int64_t high) {
  return {.name = name, .strategy = "segment", .step = 50, .step_max = 400, .high = high};
}

// The tag as parsed from its argument, with `start` as the next number.
void ExpectReadBack(TagDefinition tag, int64_t start) {
  const std::string word = FormatTagArgument(tag);
  const Result<TagDefinition> read = ParseTagArgument(word);
  ASSERT_TRUE(read.ok()) << word << ": " << read.status();
  tag.high = 0;
  tag.start = start > 0 ? std::optional(start) : std::nullopt;
  EXPECT_EQ(*read, tag) << word;
}

TEST(RestoreCommandTest, ATagIsOneArgumentThatReadsBack) {
  EXPECT_EQ(FormatTagArgument(Segment("order", 5'001)), "order=1005001,step=50,step_max=400");
  TagDefinition tag = Segment("a/b, c = 'd'", 7);
  tag.plugins = {"history", "mine"};
  tag.text = "{date:%y%m%d}{id:09}";
  tag.options = {{"mine.word", "x,y=z%"}};
  tag.disabled = true;
  ExpectReadBack(tag, 1'000'007);
  tag.start = 9'000;  // the start was raised
  ExpectReadBack(tag, 1'009'000);
  TagDefinition clock;
  clock.name = "clock";
  clock.strategy = "snowflake";
  ExpectReadBack(clock, 0);
}

// Some servers know only a number of a tag; others know its definition.
TEST(RestoreCommandTest, DistinguishesANumberFromADefinition) {
  TagDefinition tag;
  tag.name = "order";
  tag.high = 7;
  EXPECT_EQ(FormatTagArgument(tag), "order=200000007");
  EXPECT_FALSE(SaysFields(FormatTagArgument(tag)));
  tag.strategy = "segment";
  EXPECT_EQ(FormatTagArgument(tag), "order=200000007,strategy=segment");
  ExpectReadBack(tag, 200'000'007);
}

TEST(RestoreCommandTest, ATagContinuesTwoOfItsLargestRangesAboveTheHighestKnownNumber) {
  TagDefinition wide = Segment("wide", 1);
  wide.step_max = 1'000'000;
  EXPECT_EQ(*ParseTagArgument(FormatTagArgument(wide))->start, 2'000'001);
}

TEST(RestoreCommandTest, ATagThatTheGapWouldEndNeedsItsNumber) {
  EXPECT_EQ(FormatTagArgument(Segment("last", INT64_MAX - 5)),
            "last=START_ABOVE_9223372036854775801,step=50,step_max=400");
  TagDefinition tag = Segment("short", 5'001);
  tag.plugins = {"obfuscate"};
  tag.obfuscate_width = 6;
  tag.obfuscate_key = "k1";
  EXPECT_TRUE(FormatTagArgument(tag).starts_with("short=START_ABOVE_5000,"));
}

TEST(RestoreCommandTest, NamesAnInvalidArgument) {
  for (const char* word :
       {"", "order", "order=", "order=x", "order=-1", "order=0", "=5", "a b=5", "order=5,",
        "order=5,x", "order=5,colour=blue", "order=5,step=0", "order=5,step=%"}) {
    const auto refused = ParseTagArgument(word);
    EXPECT_EQ(refused.code(), Code::kInvalid) << word;
    EXPECT_NE(refused.status().message().find("'"), std::string::npos) << refused.status();
  }
}

// A number that is too low would be worse than a missing one.
TEST(RestoreCommandTest, AnUnknownNumberIsAPlaceholderThatIsRefused) {
  const std::string command = RestoreCommand({.registry = "dir:///x", .unread = {Segment("o", 0)}});
  EXPECT_EQ(command, "firn restore --registry=dir:///x o=START,step=50,step_max=400");
  const std::string above =
      RestoreCommand({.registry = "dir:///x", .unread = {Segment("o", 5'001)}});
  EXPECT_EQ(above, "firn restore --registry=dir:///x o=START_ABOVE_5000,step=50,step_max=400");
  EXPECT_EQ(ParseTagArgument("o=START_ABOVE_5000,step=50").code(), Code::kInvalid);
  const auto refused = ParseTagArgument("o=START,step=50,step_max=400");
  EXPECT_NE(refused.status().message().find("START must be a number"), std::string::npos)
      << refused.status();
}

TEST(RestoreCommandTest, ContainsTheSettingsOfTheRootNode) {
  RestoreArguments words{.registry = "dir:///x"};
  AddSettings(
      {.uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab",
       .layout = "firn",
       .rack_bits = 3,
       .workers = 16,
       .default_strategy = "snowflake",
       .ids_since = WallMs(1'795'582'362'773),
       .reserved = {{MachineId(0), MachineId(1), "old, 'a'"}, {MachineId(4), MachineId(4), "b"}},
       .retired = {MachineId(7)}},
      words);
  AddKnown({.bounds = {{MachineId(7), WallMs(400'000'000)}, {MachineId(8), WallMs(1'000)}},
            .now = WallMs(1)},
           words);
  EXPECT_EQ(RestoreCommand(words),
            "firn restore --registry=dir:///x --uuid=6f1b0c7e-1f3a-4c55-9d0e-0123456789ab "
            "--layout=firn --rack_bits=3 --workers=16 --default_strategy=snowflake "
            "--ids_since=2026-11-25T04:52:42.773Z --reserve=0-1=old%2C+%27a%27,4=b --bound_ms=1000 "
            "--retire=7");
}

TEST(RestoreCommandTest, StatesThatThereIsNoDefaultStrategyAndNoReservation) {
  RestoreArguments words{.registry = "dir:///x"};
  AddSettings({.uuid = "u", .layout = "firn"}, words);
  EXPECT_EQ(RestoreCommand(words),
            "firn restore --registry=dir:///x --uuid=u --layout=firn --rack_bits=0 "
            "--default_strategy= --reserve=");
}

TEST(RestoreCommandTest, PrintsAShareOfLeasesThatIsNotHalf) {
  RestoreArguments words{.registry = "dir:///x"};
  AddSettings({.uuid = "u", .layout = "firn", .lease_share = 10}, words);
  EXPECT_NE(RestoreCommand(words).find(" --lease_share=10 "), std::string::npos);
  AddSettings({.uuid = "u", .layout = "firn"}, words);
  EXPECT_EQ(RestoreCommand(words).find("lease_share"), std::string::npos);
}

TEST(RestoreCommandTest, PrintsPlaceholdersForWhatWasNeverRead) {
  EXPECT_EQ(
      RestoreCommand({.registry = "dir:///x", .root_unread = true, .tags_unread = true}),
      "firn restore --registry=dir:///x --default_strategy=UNKNOWN --reserve=UNKNOWN TAG=START");
  EXPECT_EQ(ParseTagArgument(kUnreadTags).code(), Code::kInvalid);
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

// After a restore ids are ahead of the wall clock, and stay so.
TEST(RootSettingsTest, IdsAreAsFarAheadAsTheyStartedAfterTheRestore) {
  EXPECT_EQ(RootSettings().IdsBy(WallMs(5'000)), WallMs());
  const RootSettings restored{.floor = WallMs(4'000), .era_began = WallMs(1'000)};
  EXPECT_EQ(restored.IdsBy(WallMs(6'000)), WallMs(9'000));
  EXPECT_EQ(restored.IdsBy(WallMs(500)), WallMs(4'000));
}

// What the server holds and has read counts more than its state folder.
TEST(RestoreCommandTest, AServerAddsItsStateFolderToWhatItKnows) {
  const RootSettings root{.uuid = "u", .layout = "firn", .workers = 4};
  const KeptCluster kept{.tags = {{"order", Segment("order", 9'001)}, {"old", Segment("old", 5)}},
                         .last = {{MachineId(1), WallMs(3'000)}}};
  const KnownCluster known{.bounds = {{MachineId(1), WallMs(2'000)}},
                           .highest = {{"order", 5'001}},
                           .tags = {{"order", Segment("order", 1)}},
                           .now = WallMs(1)};
  const RestoreArguments place{.registry = "dir:///x", .uuid = "u"};
  EXPECT_EQ(ServerRestoreCommand(place, &root, kept, /*tags_read=*/true, known),
            "firn restore --registry=dir:///x --uuid=u --layout=firn --rack_bits=0 --workers=4 "
            "--default_strategy= --reserve= --bound_ms=2000 order=1009001,step=50,step_max=400");
  const std::string unread = ServerRestoreCommand(place, &root, kept, /*tags_read=*/false, known);
  EXPECT_NE(unread.find(" old=START_ABOVE_4,step=50,step_max=400"), std::string::npos) << unread;
}

TEST(RestoreCommandTest, AServerWithoutAClaimUsesTheBoundsOfItsStateFolder) {
  const KeptCluster kept{.last = {{MachineId(1), WallMs(3'000)}}};
  const KnownCluster known{.bounds = {{std::nullopt, WallMs()}}, .now = WallMs(1)};
  const RootSettings other{.uuid = "another", .layout = "firn"};
  EXPECT_EQ(ServerRestoreCommand({.registry = "dir:///x", .uuid = "u", .layout = "firn"}, &other,
                                 kept, /*tags_read=*/false, known),
            "firn restore --registry=dir:///x --uuid=u --layout=firn --default_strategy=UNKNOWN "
            "--reserve=UNKNOWN --bound_ms=3000 TAG=START");
}

// A bound that is older than the time that ids have reached must not hide that time.
TEST(RestoreCommandTest, AServerAddsHowFarIdsRunAheadSinceTheLastRestore) {
  const RootSettings root{
      .uuid = "u", .layout = "firn", .floor = WallMs(4'000), .era_began = WallMs(1'000)};
  const KeptCluster kept{.last = {{MachineId(1), WallMs(7'000)}}};
  const auto bound_of = [&](const Bounds& bounds, int64_t now) {
    const std::string command =
        ServerRestoreCommand({.registry = "dir:///x", .uuid = "u"}, &root, kept, /*tags_read=*/true,
                             {.bounds = bounds, .now = WallMs(now)});
    const size_t at = command.find("--bound_ms=");
    return at == command.npos ? "" : command.substr(at, command.find(' ', at) - at);
  };
  const std::pair lease(std::optional<MachineId>(), WallMs(500));
  const std::pair claim(std::optional(MachineId(2)), WallMs(600));
  EXPECT_EQ(bound_of({lease}, 6'000), "--bound_ms=9000") << "ids run 3000 ms ahead";
  EXPECT_EQ(bound_of({claim}, 6'000), "--bound_ms=9000");
  EXPECT_EQ(bound_of({lease}, 2'000), "--bound_ms=7000") << "the bound of the state folder";
  EXPECT_EQ(bound_of({claim}, 2'000), "--bound_ms=5000") << "a claim replaces that";
}

TEST(RestoreCommandTest, ContainsAClaimWindowThatIsLongerThanUsual) {
  const auto with = [](int64_t ms) {
    return RestoreCommand({.registry = "dir:///x", .window = Milliseconds(ms)});
  };
  EXPECT_EQ(with(600'000), "firn restore --registry=dir:///x");
  EXPECT_EQ(with(600'001), "firn restore --registry=dir:///x --claim_window_ms=600001");
}

TEST(RestoreCommandTest, TheLargestRecordedWindowReplacesAServersOwn) {
  RootSettings root{.uuid = "u", .layout = "firn"};
  root.window = Milliseconds(5'400'000);
  const std::string command = ServerRestoreCommand({.registry = "dir:///r", .uuid = "u"}, &root, {},
                                                   /*tags_read=*/true, {});
  EXPECT_NE(command.find(" --claim_window_ms=5400000"), std::string::npos) << command;
}

TEST(RestoreCommandTest, QuotesTheCommandForAShell) {
  const RestoreArguments words{.registry = "zk://h:2181/firn/shop",
                               .uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab",
                               .layout = "time:31s machine:10 sequence:22",
                               .rack_bits = 2,
                               .bound = WallMs(1'750'000'000'000),
                               .tags = {Segment("order", 5'001), Segment("-x", 1)}};
  EXPECT_EQ(RestoreCommand(words),
            "firn restore --registry=zk://h:2181/firn/shop "
            "--uuid=6f1b0c7e-1f3a-4c55-9d0e-0123456789ab "
            "'--layout=time:31s machine:10 sequence:22' --rack_bits=2 --bound_ms=1750000000000 "
            "order=1005001,step=50,step_max=400 -- -x=1000001,step=50,step_max=400");
}

}  // namespace
}  // namespace firn
