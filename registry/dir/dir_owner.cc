#include "registry/dir/dir_owner.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace firn {
namespace {

constexpr mode_t kPermissions = 07777;

bool InGroup(gid_t group) {
  if (getegid() == group) return true;
  std::vector<gid_t> groups(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(count, 0)));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

std::string NameOfUser(uid_t user) {
  const passwd* entry = getpwuid(user);  // NOLINT(concurrency-mt-unsafe): before any thread of ours
  return entry == nullptr ? std::to_string(user) : std::string(entry->pw_name);
}

// Gives a new folder in `parent` to the parent's owner.
Status GiveToOwnerOf(const std::string& parent, const std::string& folder) {
  if (geteuid() != 0) return {};
  struct stat info {};
  if (stat(parent.c_str(), &info) != 0) return FileFailure("stat", parent, errno);
  if (lchown(folder.c_str(), info.st_uid, info.st_gid) == 0) return {};
  return FileFailure("chown", folder, errno);
}

}  // namespace

Result<DirOwner> OwnerIn(const std::string& folder) {
  struct stat info {};
  if (stat(folder.c_str(), &info) != 0) return FileFailure("stat", folder, errno);
  const DirOwner owner{{info.st_uid, info.st_gid}, info.st_mode & kPermissions};
  if (geteuid() == 0) return owner;
  const bool member = InGroup(info.st_gid);
  if (geteuid() == info.st_uid || (member && (info.st_mode & S_IWGRP) != 0)) {
    return DirOwner{{geteuid(), member ? info.st_gid : getegid()}, owner.mode};
  }
  const std::string user = NameOfUser(info.st_uid);
  return Denied(folder + " belongs to user " + user + ", who could not write files created now; " +
                "run this as " + user + " or root, or give a common group access (chmod g+w)");
}

Status MakeFolders(const std::string& path) {
  std::string parent = "/";
  for (size_t at = 0; at != std::string::npos;) {
    at = path.find('/', at + 1);
    const std::string folder = path.substr(0, at);
    if (mkdir(folder.c_str(), 0755) == 0) {
      FIRN_TRY(GiveToOwnerOf(parent, folder));
    } else if (errno != EEXIST) {
      return FileFailure("mkdir", folder, errno);
    }
    parent = folder;
  }
  return {};
}

}  // namespace firn
