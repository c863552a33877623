#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "registry/claim/state_folder.h"

namespace firn {

// A state folder in memory that outlives "processes": what a simulated disk holds. A test breaks it
// by its public members. Thread-compatible.
struct MemoryDisk {
  FileIdentity identity{"boot-1", 1, 1};
  std::string grant = std::string(StateFolder::kGrantBytes, ' ');
  std::optional<std::string> hint{};
  bool grant_writes_fail = false;
  bool grant_removal_fails = false;
  int grant_writes = 0;
};

// One process's view of such a disk.
class MemoryStateFolder final : public StateFolder {
 public:
  explicit MemoryStateFolder(MemoryDisk& disk) : disk_(disk), identity_(disk.identity) {}

  FileIdentity grant_identity() const override { return identity_; }

  Result<std::string> ReadGrant() override { return disk_.grant; }

  Status WriteGrant(size_t offset, std::string_view bytes, Durability) override {
    if (disk_.grant_writes_fail) return Unavailable("no space on the disk");
    ++disk_.grant_writes;
    disk_.grant.replace(offset, bytes.size(), bytes);
    return {};
  }

  Status RemoveGrant() override {
    if (disk_.grant_removal_fails) return Denied("the disk is read-only");
    disk_.grant.assign(kGrantBytes, ' ');
    ++disk_.identity.inode;  // whoever opens it next makes a new file
    return {};
  }

  Result<std::string> ReadHint() override {
    if (!disk_.hint.has_value()) return NotFound("no hint");
    return *disk_.hint;
  }

  Status ReplaceHint(std::string_view text) override {
    disk_.hint = text;
    return {};
  }

 private:
  MemoryDisk& disk_;
  const FileIdentity identity_;
};

}  // namespace firn
