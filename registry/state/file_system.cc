#include "registry/state/file_system.h"

#include <cerrno>

#include <linux/magic.h>
#include <sys/vfs.h>

#include "common/base/files.h"

namespace firn {
namespace {

struct FileSystem {
  uint32_t magic;
  std::string_view name;
};

// Types that linux/magic.h does not name are given by number.
constexpr FileSystem kForeign[] = {
    {NFS_SUPER_MAGIC, "NFS"},
    {SMB_SUPER_MAGIC, "SMB"},
    {0xff534d42, "CIFS"},
    {0xfe534d42, "SMB 2"},
    {AFS_SUPER_MAGIC, "AFS"},
    {0x6b414653, "AFS"},
    {CODA_SUPER_MAGIC, "Coda"},
    {V9FS_MAGIC, "9p"},
    {0x65735546, "FUSE"},
    {0x00c36400, "Ceph"},
    {0x0bd00bd0, "Lustre"},
    {0x01161970, "GFS 2"},
    {OCFS2_SUPER_MAGIC, "OCFS 2"},
    {0x19830326, "BeeGFS"},
    {0x47504653, "GPFS"},
    {0x7461636f, "OCFS 2"},
    {0x786f4256, "a virtual machine's shared folder"},
};

}  // namespace

std::string_view ForeignFileSystem(uint32_t magic) {
  for (const FileSystem& known : kForeign) {
    if (known.magic == magic) return known.name;
  }
  return {};
}

Result<std::string_view> ForeignFileSystemAt(const std::string& path) {
  struct statfs info {};
  if (statfs(path.c_str(), &info) != 0) return FileFailure("statfs", path, errno);
  return ForeignFileSystem(static_cast<uint32_t>(info.f_type));
}

bool IsInMemory(uint32_t magic) { return magic == TMPFS_MAGIC || magic == RAMFS_MAGIC; }

Result<bool> IsInMemoryAt(const std::string& path) {
  struct statfs info {};
  if (statfs(path.c_str(), &info) != 0) return FileFailure("statfs", path, errno);
  return IsInMemory(static_cast<uint32_t>(info.f_type));
}

}  // namespace firn
