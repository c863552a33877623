#include "registry/state/file_system.h"

#include <string_view>

#include <gtest/gtest.h>
#include <linux/magic.h>

namespace firn {
namespace {

struct FileSystemRow {
  const char* name;
  uint32_t magic;
  const char* known_as;  // null: a local file system
};

TEST(ForeignFileSystemTest, NamesForeignFileSystems) {
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
    const std::string_view found = ForeignFileSystem(row.magic);
    if (row.known_as == nullptr) {
      EXPECT_TRUE(found.empty()) << row.name << ": " << found;
    } else {
      EXPECT_NE(found.find(row.known_as), std::string::npos) << row.name << ": " << found;
    }
  }
}

TEST(ForeignFileSystemTest, ReturnsTheFileSystemOfAPath) {
  EXPECT_TRUE(ForeignFileSystemAt("/proc")->empty());
  EXPECT_EQ(ForeignFileSystemAt("/nowhere/at/all").code(), Code::kNotFound);
}

}  // namespace
}  // namespace firn
