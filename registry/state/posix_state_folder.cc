#include "registry/state/posix_state_folder.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/files.h"
#include "registry/state/abstract_socket.h"
#include "registry/state/digest.h"
#include "registry/state/this_boot.h"

namespace firn {
namespace {

// Creates the folder and its missing parents.
Status MakeFolder(const std::string& path) {
  for (size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return FileFailure("make", part, errno);
  }
  return {};
}

// The name of a grant file; differs for every state folder.
std::string GrantName(const std::string& stem, const FileIdentity& lock) {
  constexpr uint64_t kClaim = 0;  // index of the process's claim
  Digest digest;
  digest.Add(stem);
  for (const uint64_t part : {kClaim, lock.device, lock.inode, lock.born_ns}) digest.Add(part);
  return digest.text();
}

}  // namespace

PosixStateFolder::PosixStateFolder(const StatePlace& place, FileWriter::Replacer replace)
    : hint_path_(place.folder + "/" + place.stem + ".properties"),
      vm_clock_(place.vm_clock),
      hints_(std::move(replace)) {}

Result<std::unique_ptr<PosixStateFolder>> PosixStateFolder::Open(const StatePlace& place,
                                                                 FileWriter::Replacer replace) {
  if (place.folder.empty()) return Invalid("the state folder has no name");
  FIRN_TRY(MakeFolder(place.folder));
  std::unique_ptr<PosixStateFolder> opened(new PosixStateFolder(place, std::move(replace)));
  FIRN_ASSIGN(opened->boot_id_, BootId(place.vm_clock));
  Result<LockedFile> lock = LockedFile::Open(place.folder + "/" + place.stem + ".lock");
  if (lock.code() == Code::kConflict) {
    return Conflict("another process uses the state folder " + place.folder + ": " +
                    lock.status().message());
  }
  FIRN_ASSIGN(opened->lock_, std::move(lock));
  if (!place.only_on_host.empty()) {
    Result<UnsharedFile> name = TakeAbstractName(place.only_on_host);
    if (name.code() == Code::kConflict) {
      return Conflict("another process of this host uses " + place.only_on_host);
    }
    FIRN_ASSIGN(opened->only_on_host_, std::move(name));
  }
  FIRN_TRY(opened->OpenGrant(place));
  // Report an unreadable hint now: the start would otherwise continue without it.
  const Result<std::string> hint = opened->ReadHint();
  const bool readable =
      hint.ok() || hint.code() == Code::kNotFound || hint.code() == Code::kCorrupt;
  if (!readable) return hint.status();
  return opened;
}

// If no memory is available there is no grant. If another process uses the grant file, or it is
// invalid, the folder cannot be opened.
Status PosixStateFolder::OpenGrant(const StatePlace& place) {
  if (place.grant_on_disk) {
    grant_path_ = place.folder + "/" + place.stem + ".grant";
    FIRN_ASSIGN(grant_, GrantBytes::Open(grant_path_));
    return {};
  }
  const Result<std::string> folder = GrantFolder(place.grant_dir);
  if (folder.ok()) {
    const std::string path = *folder + "/" + GrantName(place.stem, lock_.identity());
    Result<GrantBytes> opened = GrantBytes::OpenInMemory(path);
    if (opened.code() == Code::kConflict || opened.code() == Code::kInvalid) {
      return opened.status().WithContext("the grant of the state folder " + place.folder);
    }
    no_grant_ = opened.status();
    if (!opened.ok()) return {};
    grant_ = *std::move(opened);
    grant_path_ = path;
  } else {
    no_grant_ = folder.status();
  }
  return {};
}

GrantIdentity PosixStateFolder::grant_identity() const {
  return {boot_id_, grant_ ? grant_->identity() : FileIdentity(), lock_.identity()};
}

// A boot id without a generation never shows that the machine is a copy.
bool PosixStateFolder::TakeCopied() {
  if (boot_id_.find('.') == std::string::npos) return false;
  Result<std::string> now = BootId(vm_clock_);
  if (!now.ok() || *now == boot_id_ || now->find('.') == std::string::npos) return false;
  boot_id_ = *std::move(now);
  return true;
}

Status PosixStateFolder::CheckOwner() const {
  if (sentinel_.InChild()) return Denied("a forked child cannot use " + hint_path_);
  return {};
}

Result<std::string> PosixStateFolder::ReadGrant() {
  FIRN_TRY(CheckOwner());
  FIRN_TRY(no_grant_);
  return grant_->Read();
}

Status PosixStateFolder::WriteGrant(size_t offset, std::string_view bytes, Durability durability) {
  FIRN_TRY(CheckOwner());
  FIRN_TRY(no_grant_);
  return grant_->Write(offset, bytes, durability);
}

Status PosixStateFolder::RemoveGrant() {
  FIRN_TRY(CheckOwner());
  FIRN_TRY(no_grant_);
  return grant_->Remove();
}

Result<std::string> PosixStateFolder::ReadHint() {
  FIRN_TRY(CheckOwner());
  return ReadRegularFile(hint_path_, kHintBytesMax, O_NOFOLLOW);
}

void PosixStateFolder::KeepHint(std::string text) { hints_.Replace(hint_path_, std::move(text)); }

}  // namespace firn
