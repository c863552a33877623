#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "registry/state/grant_file.h"
#include "registry/state/state_folder.h"
#include "tests/sim/mutants.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

// Changes both records of a grant file by `change`, if they are valid.
std::string RewriteGrant(const std::string& file, const std::function<void(GrantRecord&)>& change);

// The data that outlive a machine's process: the grant, in memory that is lost at the end of the
// boot, and the hint, on a disk that may return to an older state at any time.
struct SimDisk {
  GrantIdentity identity;
  std::string grant = std::string(StateFolder::kGrantBytes, ' ');
  // Earlier states of the grant, to which the disk may return.
  std::array<std::string, 8> older{};
  size_t writes = 0;
  std::string backup{};  // a backup of the grant; empty: none
  std::optional<std::string> hint{};
  std::optional<std::string> older_hint{};
  bool writes_fail = false;
  bool removal_fails = false;
  bool grant_on_disk = false;  // the error of a mutant
  bool no_grant = false;       // the machine has no memory that is lost at the end of a boot

  // Reboots the machine, with another boot id.
  void Reboot(std::string boot_id, size_t which);
  // Loses the disk and restores it within the same boot, without the last writes.
  void GoBack(size_t which);

  // Copies another machine's files here, or restores a backup or an earlier state. The result is a
  // different file, even if it has the inode number of the old one.
  void PutInPlace(const SimDisk& source, bool same_inode);
  void PutBackup(size_t which, bool same_inode);

  // Returns the grant of the newest valid record, or nullopt if it is void, damaged or new. Reads
  // the file again only after a write.
  const std::optional<Grant>& Permits();
  // Returns the grant that a start may resume, or null. It must have been written in this boot and
  // to this file.
  const Grant* PermitsAStart();
  void Changed() { known_ = false; }

 private:
  void MakeAnotherFile(bool same_inode);
  void BringBack(size_t which);

  bool known_ = false;
  std::optional<Grant> permits_;
  GrantIdentity permitted_as_;
};

// A process's view of a disk. It can fail, make the process die, and inject the errors of a mutant.
// Checks invariant 4: L never falls under a claim.
class SimStateFolder final : public StateFolder {
 public:
  SimStateFolder(SimDisk& disk, const MemoryTree& tree, Mutant mutant);

  // Makes the process die before, during or after its `writes`-th write from now on.
  enum class Death { kBefore, kMidst, kAfter };
  void DieIn(int writes, Death how) {
    dies_in_ = writes;
    death_ = how;
  }

  // Records that a clean stop has begun.
  void Releasing() { releasing_ = true; }

  Status has_grant() const override {
    return disk_.no_grant ? Unavailable("no tmpfs available") : Status();
  }
  GrantIdentity grant_identity() const override { return identity_; }
  bool TakeCopied() override;
  Result<std::string> ReadGrant() override;
  Status WriteGrant(size_t offset, std::string_view bytes, Durability durability) override;
  Status RemoveGrant() override;
  Result<std::string> ReadHint() override;
  void KeepHint(std::string text) override;
  Status TakeHintFailure() override { return {}; }

 private:
  void Put(size_t offset, std::string_view bytes);

  SimDisk& disk_;
  const MemoryTree& tree_;
  const Mutant mutant_;
  GrantIdentity identity_;
  std::string boot_id_;  // the boot id last read
  int dies_in_ = 0;      // 0: never
  Death death_ = Death::kBefore;
  bool releasing_ = false;
};

}  // namespace firn
