#include "registry/dir/dir_files.h"

#include <cerrno>
#include <cstdio>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace firn {
namespace {

Status MakeDraftFolder(const std::string& path, const DirOwner& owner) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return FileFailure("mkdir", path, errno);
  FIRN_ASSIGN(const FileHandle made, FileHandle::Open(path, O_RDONLY | O_DIRECTORY));
  return GiveFile(made.fd(), owner.who, owner.folder_mode(), path);
}

}  // namespace

Result<std::string> ReadFile(const std::string& path, size_t limit) {
  FIRN_ASSIGN(const FileHandle file, FileHandle::Open(path, O_RDONLY | O_NONBLOCK));
  Result<std::string> bytes = ReadAll(file.fd(), limit, path);
  return bytes.ok() ? bytes : Corrupt(bytes.status().message());
}

Status ReplaceFile(const std::string& folder, const std::string& name, std::string_view bytes,
                   const DirOwner& owner, Replaced* replaced) {
  const Draft draft{
      .path = folder + "/." + name + ".new", .mode = owner.file_mode(), .owner = owner.who};
  return ReplaceFile(folder + "/" + name, draft, bytes, replaced);
}

Status MakeFolder(const std::string& path, const DirOwner& owner) {
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) return {};
  const size_t slash = path.rfind('/');
  const std::string parent = slash == 0 ? "/" : path.substr(0, slash);
  const std::string draft = parent + "/." + path.substr(slash + 1) + ".new";
  Status made = MakeDraftFolder(draft, owner);
  if (made.ok() && rename(draft.c_str(), path.c_str()) != 0) {
    made = FileFailure("rename", draft, errno);
  }
  // Another process that created it first may have removed the draft.
  if (!made.ok() && lstat(path.c_str(), &there) != 0) return made;
  return SyncFolder(parent);
}

Status RemoveFile(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  if (unlink(path.c_str()) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    return FileFailure("unlink", path, errno);
  }
  return SyncFolder(folder);
}

Status RemoveFolder(const std::string& parent, const std::string& name) {
  const std::string path = parent + "/" + name;
  if (rmdir(path.c_str()) != 0) {
    if (errno == ENOENT) return {};
    return FileFailure("rmdir", path, errno);
  }
  return SyncFolder(parent);
}

Result<std::vector<std::string>> ListFolder(const std::string& path) {
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return FileFailure("list", path, errno);
  std::vector<std::string> names;
  int error = 0;
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(folder);
    error = errno;
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(folder);
  if (error != 0) return FileFailure("list", path, error);
  return names;
}

}  // namespace firn
