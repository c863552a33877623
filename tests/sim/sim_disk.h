#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "registry/claim/grant_file.h"
#include "registry/claim/state_folder.h"
#include "registry/memory_coordinator.h"
#include "tests/sim/mutants.h"

namespace firn {

// A machine's disk: what outlives a process, and what a reboot may bring back.
struct SimDisk {
  FileIdentity identity;
  std::string grant = std::string(StateFolder::kGrantBytes, ' ');
  // Earlier states of the grant file, any of which a reboot may bring back.
  std::array<std::string, 8> older{};
  size_t writes = 0;
  std::string backup{};  // of the grant file; empty: none was made
  std::optional<std::string> hint{};
  bool writes_fail = false;
  bool removal_fails = false;

  // Somebody copies another's files here, or puts in place a backup or one of the last states. That
  // is another file, even where it gets the old one's inode number.
  void PutInPlace(const SimDisk& source, bool same_inode);
  void PutBackup(size_t which, bool same_inode);

  // What the newest good record permits; nothing when void, damaged or new. Read again only after
  // a write.
  const std::optional<Grant>& Permits();
  // The same, when it was also written in this boot and into this very file: only then may a start
  // go on inside it.
  const Grant* PermitsAStart();
  void Changed() { known_ = false; }

 private:
  void MakeAnotherFile(bool same_inode);

  bool known_ = false;
  std::optional<Grant> permits_;
  FileIdentity permitted_as_;
};

// One process's view of a disk: breaks when told, dies when told, lies as its mutant does, and
// watches invariant 4: L never falls under a claim.
class SimStateFolder final : public StateFolder {
 public:
  SimStateFolder(SimDisk& disk, const MemoryTree& tree, Mutant mutant);

  // The process dies in its `writes`-th write from now on: before it, in its midst or after it.
  enum class Death { kBefore, kMidst, kAfter };
  void DieIn(int writes, Death how) {
    dies_in_ = writes;
    death_ = how;
  }

  // A clean stop has begun.
  void Releasing() { releasing_ = true; }

  FileIdentity grant_identity() const override { return identity_; }
  Result<std::string> ReadGrant() override;
  Status WriteGrant(size_t offset, std::string_view bytes, Durability durability) override;
  Status RemoveGrant() override;
  Result<std::string> ReadHint() override;
  Status ReplaceHint(std::string_view text) override;

 private:
  void Put(size_t offset, std::string_view bytes);

  SimDisk& disk_;
  const MemoryTree& tree_;
  const Mutant mutant_;
  FileIdentity identity_;
  int dies_in_ = 0;  // 0: not
  Death death_ = Death::kBefore;
  bool releasing_ = false;
};

}  // namespace firn
