#include "tests/drill/claimant/oracle.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/drill/claimant/journal.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

class DuplicateOracleTest : public testing::Test {
 protected:
  void Got(const std::string& process, uint32_t machine, int64_t tick, uint64_t sequence,
           int64_t count, int64_t at = 0) {
    const auto first =
        layout_.Pack({.tick = Tick(tick), .machine = MachineId(machine), .sequence = sequence});
    ASSERT_TRUE(first.ok()) << first.status();
    ASSERT_TRUE(oracle_.Add(process, {BootMs(at), {*first, count, layout_.stride()}}).ok());
  }

  const Layout layout_ = Layout::Firn();
  DuplicateOracle oracle_{layout_};
};

TEST_F(DuplicateOracleTest, AdjacentRunsAreNotDuplicates) {
  Got("a", 5, 100, 0, 10);
  Got("b", 5, 100, 10, 10);
  Got("b", 5, 101, 0, 10);
  Got("c", 6, 100, 0, 10);
  const auto found = oracle_.Judge();
  EXPECT_EQ(found.ids, 40);
  EXPECT_EQ(found.duplicates, 0) << found.first_duplicate;
}

TEST_F(DuplicateOracleTest, CountsAndNamesAnOverlap) {
  Got("a", 5, 100, 0, 10);
  Got("b", 5, 100, 7, 10);
  const auto found = oracle_.Judge();
  EXPECT_EQ(found.duplicates, 3);
  EXPECT_EQ(found.first_duplicate, "machine 5 tick 100 sequence 7 was issued by a and by b");
}

TEST_F(DuplicateOracleTest, AShortRunDoesNotHideALongOneBeforeIt) {
  Got("a", 5, 100, 0, 100);
  Got("b", 5, 100, 1, 1);
  Got("c", 5, 100, 50, 2);
  EXPECT_EQ(oracle_.Judge().duplicates, 3);
}

TEST_F(DuplicateOracleTest, ReportsTheLongestStallAndTheMachineIds) {
  Got("a", 5, 100, 0, 1, 1000);
  Got("b", 6, 100, 0, 1, 1200);
  Got("a", 5, 110, 0, 1, 1010);
  Got("a", 7, 400, 0, 1, 1310);
  oracle_.Judge();
  EXPECT_EQ(oracle_.longest_stall(), Milliseconds(300));
  EXPECT_EQ(oracle_.machines().at("a"), (std::vector<MachineId>{MachineId(5), MachineId(7)}));
}

TEST(JournalTest, ReadsBackWhatItWrites) {
  const auto run = ParseRun("12 345 6 7");
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(FormatRun(*run), "12 345 6 7\n");
  const StatusLine status{BootMs(1), "holding", MachineId(5), WallMs(9), true, 77, "issued", "why"};
  std::string line = FormatStatus(status);
  line.pop_back();
  const auto read = ParseStatus(line);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FormatStatus(*read), FormatStatus(status));
  for (const char* bad : {"", "1 2 3", "1 2 3 x", "1 2 0 1", "1 2 3 4 5"}) {
    EXPECT_EQ(ParseRun(bad).code(), Code::kCorrupt) << bad;
  }
}

TEST(JournalTest, AnIncompleteLineWaitsForItsEnd) {
  const TempDir folder;
  const std::string path = folder / "lines";
  LineReader reader(path);
  EXPECT_TRUE(reader.Next().empty());
  std::ofstream file(path);
  file << "one\ntw" << std::flush;
  EXPECT_EQ(reader.Next(), std::vector<std::string>{"one"});
  EXPECT_TRUE(reader.Next().empty());
  file << "o\nthree\n" << std::flush;
  EXPECT_EQ(reader.Next(), (std::vector<std::string>{"two", "three"}));
}

}  // namespace
}  // namespace firn
