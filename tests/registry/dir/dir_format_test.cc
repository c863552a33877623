#include "registry/dir/dir_format.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

TEST(DirFormatTest, NamesBecomeUnambiguousFolders) {
  const struct {
    const char* name;
    const char* folder;
  } table[] = {
      {"7", "7"},           {"firn.IdService", "firn.IdService"},
      {"node", "%6Eode"},   {"nodes", "nodes"},
      {".firn", "%2Efirn"}, {"~x", "%7Ex"},
      {"a%2F", "a%252F"},   {"ä b", "ä b"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(FolderOfName(row.name), row.folder);
    EXPECT_EQ(NameOfFolder(row.folder), row.name);
  }
}

TEST(DirFormatTest, LongNamesBecomeHashes) {
  const std::string folder = FolderOfName(std::string(1000, 'x'));
  EXPECT_EQ(folder.size(), 33u);
  EXPECT_NE(folder, FolderOfName(std::string(999, 'x')));
  EXPECT_EQ(NameOfFolder(folder), "");
}

TEST(DirFormatTest, FoldersThatNoNameMapsToAreInvalid) {
  for (const char* folder : {"%", "%2", "%zz", "%61", "~0123", "%2e"}) {
    EXPECT_EQ(NameOfFolder(folder), "") << folder;
  }
}

TEST(DirFormatTest, NodesReadBackAsWritten) {
  const Node node{std::string("{}\n\0x", 5), {7, 123, WallMs(1'700'000'000'000), -5}};
  const Result<NodeFile> file = ParseNode(RenderNode("a name", node));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->name, "a name");
  EXPECT_EQ(file->node.data, node.data);
  EXPECT_EQ(file->node.stat, node.stat);
}

TEST(DirFormatTest, DetectsEveryChangedOrMissingByteOfANode) {
  const std::string good = RenderNode("7", {"{\"bound\":12}", {3, 5, WallMs(9), 0}});
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_EQ(ParseNode(bad).code(), Code::kCorrupt) << i;
    EXPECT_EQ(ParseNode(good.substr(0, i)).code(), Code::kCorrupt) << i;
  }
  EXPECT_EQ(ParseNode(good + "x").code(), Code::kCorrupt);
}

TEST(DirFormatTest, JournalsReadBackAndEveryChangedByteIsDetected) {
  const std::vector<NodeChange> changes = {
      {"/", "bytes\nput 3 4\n"}, {"/a/b", ""}, {"/a/live", std::nullopt}};
  const std::string good = RenderJournal(changes);
  const Result<std::vector<NodeChange>> parsed = ParseJournal(good);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, changes);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_EQ(ParseJournal(bad).code(), Code::kCorrupt) << i;
    EXPECT_EQ(ParseJournal(good.substr(0, i)).code(), Code::kCorrupt) << i;
  }
}

}  // namespace
}  // namespace firn
