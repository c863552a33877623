#include "registry/dir/dir_place.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace firn {
namespace {

DirIdentity Recorded() { return {2049, 77, 1'750'000'000'000'000'001, "abc"}; }

// --- file systems --------------------------------------------------------------------------------

TEST(CheckFileSystemTest, ChecksTheFileSystemOfAPath) {
  const TempDir folder;
  EXPECT_TRUE(CheckFileSystem(folder / ".").ok());
  EXPECT_FALSE(CheckFileSystem(folder / "nothing").ok());
}

// --- identity ------------------------------------------------------------------------------------

TEST(DirIdentityTest, ReadsBackAndRefusesOtherText) {
  DirIdentity odd{2049, 1ULL << 63, kBirthUntold, "abc \"def\""};
  EXPECT_EQ(*ParseIdentity(RenderIdentity(odd)), odd);
  EXPECT_EQ(*ParseIdentity(RenderIdentity(Recorded())), Recorded());
  for (const char* bad : {"", "{}", "[]", "{\"format\":3}", R"({"format":"2"})",
                          R"({"format":3,"device":-1,"inode":2,"born_ns":3,"machine":""})",
                          R"({"format":3,"device":1,"inode":"2","born_ns":3,"machine":""})",
                          R"({"format":3,"device":1,"inode":2,"machine":""})",
                          R"({"format":3,"device":1,"inode":2,"born_ns":1.5,"machine":""})",
                          R"({"format":3,"device":1,"inode":2,"born_ns":3,"machine":null})"}) {
    EXPECT_EQ(ParseIdentity(bad).code(), Code::kCorrupt) << bad;
  }
}

TEST(DirIdentityTest, RefusesAnotherFormatByName) {
  const auto old = ParseIdentity(R"({"format":2,"device":1,"inode":2,"born_ns":3,"machine":""})");
  EXPECT_EQ(old.code(), Code::kInvalid);
  EXPECT_NE(old.status().message().find("Firn 0.1"), std::string::npos) << old.status();
  EXPECT_EQ(ParseIdentity(R"({"format":4})").code(), Code::kInvalid);
  EXPECT_TRUE(
      ParseIdentity(R"({"format":3,"device":1,"inode":2,"born_ns":3,"machine":"","x":[1]})").ok());
}

TEST(DirIdentityTest, NamesTheDifferenceAndTheRemedy) {
  struct Row {
    DirIdentity now;
    const char* words;
  };
  const DirIdentity was = Recorded();
  const Row rows[] = {
      {{was.device, was.inode + 1, was.born_ns, was.machine}, "its inode differs"},
      {{was.device, was.inode, was.born_ns + 1, was.machine}, "created later"},
      {{was.device, was.inode, kBirthUntold, was.machine}, "created later"},
      {{was.device, was.inode, was.born_ns, ""}, "another machine"},
  };
  EXPECT_TRUE(CheckIdentity(was, was, "/r").ok());
  // After a new mount, an overlay, btrfs or ZFS has another device number.
  EXPECT_TRUE(CheckIdentity(was, {was.device + 1, was.inode, was.born_ns, was.machine}, "/r").ok());
  for (const Row& row : rows) {
    const Status refused = CheckIdentity(was, row.now, "/r");
    EXPECT_EQ(refused.code(), Code::kCorrupt) << row.words;
    EXPECT_NE(refused.message().find(row.words), std::string::npos) << refused;
    EXPECT_NE(refused.message().find("dir:///r?adopt"), std::string::npos) << refused;
  }
}

TEST(DirIdentityTest, WithoutABirthTimeTheDeviceIsCompared) {
  const DirIdentity was{2049, 77, kBirthUntold, "abc"};
  EXPECT_TRUE(CheckIdentity(was, was, "/r").ok());
  const Status refused = CheckIdentity(was, {2050, 77, kBirthUntold, "abc"}, "/r");
  EXPECT_NE(refused.message().find("its device differs"), std::string::npos) << refused;
}

TEST(DirIdentityTest, IsStableUntilTheDirectoryIsRecreated) {
  const TempDir folder;
  const auto first = Identify(folder / ".", "/nowhere");
  const auto again = Identify(folder / ".", "/nowhere");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(first->machine, "");
  EXPECT_FALSE(Identify(folder / "nothing", "/nowhere").ok());
}

}  // namespace
}  // namespace firn
