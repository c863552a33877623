#include "registry/dir/dir_place.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <linux/magic.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "registry/dir/dir_files.h"

namespace firn {
namespace {

constexpr int kFormat = 2;

struct FileSystem {
  uint32_t magic;
  const char* name;
};

// Those that linux/magic.h does not name are given by number.
constexpr FileSystem kRefused[] = {
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

Status CheckFileSystem(const std::string& path) {
  struct statfs info {};
  if (statfs(path.c_str(), &info) != 0) return FileFailure("statfs", path, errno);
  return CheckFileSystemType(static_cast<uint32_t>(info.f_type), path);
}

Status CheckFileSystemType(uint32_t magic, const std::string& path) {
  for (const FileSystem& refused : kRefused) {
    if (refused.magic != magic) continue;
    return Invalid(path + " lies on " + refused.name +
                   ": a directory registry wants a file system of this host's own");
  }
  return {};
}

Result<DirIdentity> Identify(const std::string& path, const std::string& machine_id_file) {
  FIRN_ASSIGN(const FileHandle folder, FileHandle::Open(path, O_RDONLY | O_DIRECTORY));
  struct stat info {};
  if (fstat(folder.fd(), &info) != 0) return FileFailure("stat", path, errno);
  DirIdentity identity{info.st_dev, info.st_ino, BirthOf(folder.fd()), {}};
  Result<std::string> machine = ReadFile(machine_id_file, 256);
  if (machine.ok()) identity.machine = machine->substr(0, machine->find('\n'));
  return identity;
}

std::string RenderIdentity(const DirIdentity& identity) {
  return nlohmann::json{{"format", kFormat},
                        {"device", identity.device},
                        {"inode", identity.inode},
                        {"born_ns", identity.born_ns},
                        {"machine", identity.machine}}
             .dump() +
         "\n";
}

Result<DirIdentity> ParseIdentity(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  const auto number = [&](const char* key) {
    return json.contains(key) && json[key].is_number_unsigned();
  };
  if (!json.is_object() || !number("format") || json["format"] != kFormat || !number("device") ||
      !number("inode") || !number("born_ns") || !json.contains("machine") ||
      !json["machine"].is_string()) {
    return Corrupt("its identity cannot be read");
  }
  return DirIdentity{json["device"], json["inode"], json["born_ns"], json["machine"]};
}

Status CheckIdentity(const DirIdentity& recorded, const DirIdentity& now, const std::string& path) {
  if (recorded == now) return {};
  const char* differs = recorded.machine != now.machine ? "it was made on another machine"
                        : recorded.inode != now.inode   ? "it is a copy: its inode differs"
                        : recorded.born_ns != now.born_ns
                            ? "it is a copy in the original's place: it was made later"
                            : "its device differs";
  return Corrupt(path + " is not the directory that became a registry: " + differs +
                 ". Two copies in use give the same ids twice. When this is certainly the only one "
                 "in use, now and later, open it once as dir://" +
                 path + "?adopt");
}

}  // namespace firn
