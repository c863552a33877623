#include "registry/dir/dir_place.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

#include "common/json/json.h"
#include "registry/dir/dir_files.h"
#include "registry/state/file_system.h"

namespace firn {
namespace {

constexpr uint64_t kFormat = 3;  // 2 was Firn 0.1's
constexpr size_t kIdentityBytesMax = 4096;

}  // namespace

Status CheckFileSystem(const std::string& path) {
  FIRN_ASSIGN(const std::string_view foreign, ForeignFileSystemAt(path));
  if (foreign.empty()) return {};
  return Invalid(path + " is on " + std::string(foreign) +
                 "; a directory registry needs a file system local to this host");
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
  return JsonText(Json{{"born_ns", identity.born_ns},
                       {"device", identity.device},
                       {"format", kFormat},
                       {"inode", identity.inode},
                       {"machine", identity.machine}}) +
         "\n";
}

Result<DirIdentity> ParseIdentity(const std::string& text) {
  const Result<Json> read = ParseJson(text, kIdentityBytesMax);
  const Json json = read.value_or(Json::object());
  const auto format = json.at("format").natural();
  if (!format) return Corrupt("its identity cannot be read");
  if (*format < kFormat) {
    return Invalid("it is a registry of Firn 0.1, which is no longer supported; make a new one");
  }
  if (*format > kFormat) return Invalid("a newer version of Firn created it; install that version");
  const auto device = json.at("device").natural();
  const auto inode = json.at("inode").natural();
  const auto born_ns = json.at("born_ns").natural();
  const Json& machine = json.at("machine");
  if (!device || !inode || !born_ns || !machine.is_string()) {
    return Corrupt("its identity cannot be read");
  }
  return DirIdentity{*device, *inode, *born_ns, machine.text()};
}

namespace {

// Returns the relevant difference; empty: there is none.
std::string DifferenceOf(const DirIdentity& recorded, const DirIdentity& now) {
  if (recorded.machine != now.machine) return "it was made on another machine";
  if (recorded.inode != now.inode) return "it is a copy: its inode differs";
  if (recorded.born_ns != now.born_ns) {
    return "it is a copy in the original's place, created later";
  }
  if (now.born_ns != kBirthUntold || recorded.device == now.device) return {};
  return "its device differs, and its file system has no birth times";
}

}  // namespace

Status CheckIdentity(const DirIdentity& recorded, const DirIdentity& now, const std::string& path) {
  const std::string differs = DifferenceOf(recorded, now);
  if (differs.empty()) return {};
  return Corrupt(path + " is not the directory that became a registry: " + differs +
                 ". Using two copies leads to duplicate ids; if this is the only one in use, now "
                 "and later, open it once as dir://" +
                 path + "?adopt");
}

}  // namespace firn
