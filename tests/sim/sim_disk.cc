#include "tests/sim/sim_disk.h"

#include <algorithm>
#include <utility>

#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

constexpr size_t kRecordBytes = GrantFile::kRecordBytes;
constexpr Milliseconds kLowered{150};

}  // namespace

std::string RewriteGrant(const std::string& file, const std::function<void(GrantRecord&)>& change) {
  const std::string_view all = file;
  std::string rewritten;
  for (const size_t at : {size_t{0}, kRecordBytes}) {
    const std::string_view bytes = all.substr(at, kRecordBytes);
    Result<GrantRecord> record = ParseGrantRecord(bytes);
    if (record.ok()) change(*record);
    rewritten += record.ok() ? FormatGrantRecord(*record) : std::string(bytes);
  }
  return rewritten;
}

void SimDisk::PutInPlace(const SimDisk& source, bool same_inode) {
  grant = source.grant;
  hint = source.hint;
  MakeAnotherFile(same_inode);
}

void SimDisk::PutBackup(size_t which, bool same_inode) {
  const std::string& source = which < older.size() ? older[which] : backup;
  if (source.empty()) return;
  grant = source;
  MakeAnotherFile(same_inode);
}

void SimDisk::Reboot(std::string boot_id, size_t which) {
  identity.boot_id = std::move(boot_id);
  if (grant_on_disk) return BringBack(which);
  grant.assign(StateFolder::kGrantBytes, ' ');
  older.fill({});
  MakeAnotherFile(true);
}

void SimDisk::GoBack(size_t which) {
  hint = older_hint;
  // The lock file may not have existed in that state, so it may be a new file.
  if (which % 4 == 0) ++identity.lock.born_ns;
  if (grant_on_disk) BringBack(which);
}

void SimDisk::BringBack(size_t which) {
  if (which >= older.size() || older[which].empty()) return;
  grant = older[which];
  Changed();
}

void SimDisk::MakeAnotherFile(bool same_inode) {
  ++identity.file.born_ns;
  if (!same_inode) ++identity.file.inode;
  Changed();
}

const std::optional<Grant>& SimDisk::Permits() {
  if (known_) return permits_;
  known_ = true;
  permits_.reset();
  uint64_t newest = 0;
  for (const size_t at : {size_t{0}, kRecordBytes}) {
    const auto record = ParseGrantRecord(std::string_view(grant).substr(at, kRecordBytes));
    if (!record.ok() || record->counter < newest) continue;
    newest = record->counter;
    permits_.reset();
    permitted_as_ = record->identity;
    if (!record->grant.nonce.zero()) permits_ = record->grant;
  }
  return permits_;
}

const Grant* SimDisk::PermitsAStart() {
  return Permits().has_value() && permitted_as_ == identity ? &*permits_ : nullptr;
}

SimStateFolder::SimStateFolder(SimDisk& disk, const MemoryTree& tree, Mutant mutant)
    : disk_(disk),
      tree_(tree),
      mutant_(mutant),
      identity_(disk.identity),
      boot_id_(disk.identity.boot_id) {
  static_cast<void>(RewriteGrant(disk_.grant, [&](const GrantRecord& record) {
    if (record.grant.nonce.zero()) return;
    if (mutant_ == Mutant::kCopiedGrantTrusted) {
      identity_.file = record.identity.file;
      identity_.lock = record.identity.lock;
    }
    if (mutant_ == Mutant::kInodeNumberOnly) {
      identity_.file.born_ns = record.identity.file.born_ns;
    }
    const std::string& boot_id = record.identity.boot_id;
    if (mutant_ == Mutant::kCopyUnseen && disk.identity.boot_id.starts_with(boot_id)) {
      identity_.boot_id = boot_id;
    }
    if (mutant_ == Mutant::kGrantSurvivesReboot) identity_.boot_id = record.identity.boot_id;
  }));
}

bool SimStateFolder::TakeCopied() {
  if (boot_id_ == disk_.identity.boot_id || mutant_ == Mutant::kCopyUnseen) return false;
  identity_.boot_id = boot_id_ = disk_.identity.boot_id;
  return true;
}

Result<std::string> SimStateFolder::ReadGrant() {
  Require(!disk_.no_grant, 4, "a grant is read although there is none");
  if (mutant_ != Mutant::kGrantWithoutMeta) return disk_.grant;
  const auto meta = tree_.Peek(kMetaPath);
  return RewriteGrant(disk_.grant, [&](GrantRecord& record) {
    if (meta.has_value()) record.grant.meta_version = meta->stat.version;
  });
}

Status SimStateFolder::WriteGrant(size_t offset, std::string_view bytes, Durability) {
  Require(!disk_.no_grant, 4, "a grant is written although there is none");
  if (disk_.writes_fail) return Unavailable("no space on the disk");
  const bool dies = dies_in_ > 0 && --dies_in_ == 0;
  if (dies && death_ == Death::kBefore) throw ProcessDies();
  if (dies && death_ == Death::kMidst) {
    Put(offset, std::string(bytes.substr(0, bytes.size() / 3)));
    throw ProcessDies();
  }
  const Result<GrantRecord> record = ParseGrantRecord(bytes);
  if (!record.ok()) throw Violation(4, "a grant record that does not read back");
  const bool voids = record->grant.nonce.zero();
  const auto& before = disk_.Permits();
  if (!voids && before.has_value() && before->nonce == record->grant.nonce &&
      mutant_ == Mutant::kNone) {
    Require(record->grant.limit >= before->limit, 4, "L fell under a claim");
  }
  if (voids && mutant_ == Mutant::kReleaseBeforeVoid) return {};
  if (voids && mutant_ == Mutant::kLossNotVoided && !releasing_) return {};
  if (!voids && mutant_ == Mutant::kLimitLowered) {
    GrantRecord lower = *record;
    lower.grant.limit -= kLowered;
    Put(offset, FormatGrantRecord(lower));
  } else if (mutant_ == Mutant::kOfflineUnnamed) {
    GrantRecord forgets = *record;
    forgets.grant.offline.clear();
    Put(offset, FormatGrantRecord(forgets));
  } else {
    Put(offset, bytes);
  }
  if (dies) throw ProcessDies();
  return {};
}

void SimStateFolder::Put(size_t offset, std::string_view bytes) {
  disk_.older[disk_.writes++ % disk_.older.size()] = disk_.grant;
  disk_.grant.replace(offset, bytes.size(), bytes);
  disk_.Changed();
}

Status SimStateFolder::RemoveGrant() {
  if (disk_.removal_fails) return Denied("the disk is read-only");
  disk_.grant.assign(kGrantBytes, ' ');
  disk_.older.fill({});
  ++disk_.identity.file.inode;
  disk_.Changed();
  return {};
}

Result<std::string> SimStateFolder::ReadHint() {
  if (!disk_.hint.has_value()) return NotFound("no hint");
  return *disk_.hint;
}

void SimStateFolder::KeepHint(std::string text) {
  if (disk_.writes_fail) return;
  if (mutant_ == Mutant::kHintWithoutClaim) text.resize(std::min(text.size(), text.find("claim=")));
  disk_.older_hint = std::exchange(disk_.hint, std::move(text));
}

}  // namespace firn
