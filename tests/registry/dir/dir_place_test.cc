#include "registry/dir/dir_place.h"

#include <string>

#include <gtest/gtest.h>
#include <linux/magic.h>

#include "tests/support/temp_dir.h"

namespace firn {
namespace {

DirIdentity Recorded() { return {2049, 77, 1'750'000'000'000'000'001, "abc"}; }

// --- file systems --------------------------------------------------------------------------------

struct FileSystemRow {
  const char* name;
  uint32_t magic;
  const char* refused_as;  // nothing: taken
};

TEST(CheckFileSystemTest, TakesThoseOfOneHostOnly) {
  constexpr FileSystemRow kRows[] = {
      {"ext4", EXT4_SUPER_MAGIC, nullptr},
      {"xfs", XFS_SUPER_MAGIC, nullptr},
      {"btrfs", BTRFS_SUPER_MAGIC, nullptr},
      {"tmpfs", TMPFS_MAGIC, nullptr},
      {"a container's overlay", OVERLAYFS_SUPER_MAGIC, nullptr},
      {"zfs", 0x2fc12fc1, nullptr},
      {"nfs", NFS_SUPER_MAGIC, "NFS"},
      {"smbfs", SMB_SUPER_MAGIC, "SMB"},
      {"cifs", 0xff534d42, "CIFS"},
      {"smb2", 0xfe534d42, "SMB 2"},
      {"afs", AFS_SUPER_MAGIC, "AFS"},
      {"openafs", 0x6b414653, "AFS"},
      {"coda", CODA_SUPER_MAGIC, "Coda"},
      {"9p", V9FS_MAGIC, "9p"},
      {"fuse: sshfs, s3fs, glusterfs and others", 0x65735546, "FUSE"},
      {"ceph", 0x00c36400, "Ceph"},
      {"lustre", 0x0bd00bd0, "Lustre"},
      {"gfs2", 0x01161970, "GFS 2"},
      {"ocfs2", OCFS2_SUPER_MAGIC, "OCFS 2"},
      {"beegfs", 0x19830326, "BeeGFS"},
      {"gpfs", 0x47504653, "GPFS"},
      {"vboxsf", 0x786f4256, "shared folder"},
  };
  for (const FileSystemRow& row : kRows) {
    const Status checked = CheckFileSystemType(row.magic, "/var/lib/firn");
    if (row.refused_as == nullptr) {
      EXPECT_TRUE(checked.ok()) << row.name << ": " << checked;
      continue;
    }
    EXPECT_EQ(checked.code(), Code::kInvalid) << row.name;
    EXPECT_NE(checked.message().find("/var/lib/firn lies on "), std::string::npos) << checked;
    EXPECT_NE(checked.message().find(row.refused_as), std::string::npos) << checked;
  }
}

TEST(CheckFileSystemTest, AsksTheFileSystemThatAPathLiesOn) {
  const TempDir folder;
  EXPECT_TRUE(CheckFileSystem(folder / ".").ok());
  EXPECT_FALSE(CheckFileSystem(folder / "nothing").ok());
}

// --- identity ------------------------------------------------------------------------------------

TEST(DirIdentityTest, ComesBackAndNothingElseIsOne) {
  DirIdentity odd{2049, 1ULL << 63, kBirthUntold, "abc \"def\""};
  EXPECT_EQ(*ParseIdentity(RenderIdentity(odd)), odd);
  EXPECT_EQ(*ParseIdentity(RenderIdentity(Recorded())), Recorded());
  for (const char* bad : {"", "{}", "[]", "{\"format\":2}",
                          R"({"format":1,"device":1,"inode":2,"born_ns":3,"machine":""})",
                          R"({"format":2,"device":-1,"inode":2,"born_ns":3,"machine":""})",
                          R"({"format":2,"device":1,"inode":"2","born_ns":3,"machine":""})",
                          R"({"format":2,"device":1,"inode":2,"machine":""})",
                          R"({"format":2,"device":1,"inode":2,"born_ns":1.5,"machine":""})",
                          R"({"format":2,"device":1,"inode":2,"born_ns":3,"machine":null})"}) {
    EXPECT_EQ(ParseIdentity(bad).code(), Code::kCorrupt) << bad;
  }
}

TEST(DirIdentityTest, WhateverDiffersIsNamedTogetherWithTheWayOut) {
  struct Row {
    DirIdentity now;
    const char* words;
  };
  const DirIdentity was = Recorded();
  const Row rows[] = {
      {{was.device + 1, was.inode, was.born_ns, was.machine}, "its device differs"},
      {{was.device, was.inode + 1, was.born_ns, was.machine}, "its inode differs"},
      {{was.device, was.inode, was.born_ns + 1, was.machine}, "it was made later"},
      {{was.device, was.inode, kBirthUntold, was.machine}, "it was made later"},
      {{was.device, was.inode, was.born_ns, ""}, "another machine"},
  };
  EXPECT_TRUE(CheckIdentity(was, was, "/r").ok());
  for (const Row& row : rows) {
    const Status refused = CheckIdentity(was, row.now, "/r");
    EXPECT_EQ(refused.code(), Code::kCorrupt) << row.words;
    EXPECT_NE(refused.message().find(row.words), std::string::npos) << refused;
    EXPECT_NE(refused.message().find("dir:///r?adopt"), std::string::npos) << refused;
  }
}

TEST(DirIdentityTest, OfADirectoryIsTheSameUntilItIsMadeAnew) {
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
