#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "registry/state/state_folder.h"

namespace firn {

// A state folder in memory that outlives "processes": the content of a simulated disk. A test
// breaks it by its public members. Thread-compatible.
struct MemoryDisk {
  GrantIdentity identity{"boot-1", {1, 1, 1}, {2, 2, 2}};
  std::string grant = std::string(StateFolder::kGrantBytes, ' ');
  std::optional<std::string> hint{};
  bool grant_writes_fail = false;
  bool grant_removal_fails = false;
  bool has_grant = true;
  bool hint_writes_fail = false;
  int grant_writes = 0;
};

// One process's view of such a disk.
class MemoryStateFolder final : public StateFolder {
 public:
  explicit MemoryStateFolder(MemoryDisk& disk) : disk_(disk), identity_(disk.identity) {}

  Status has_grant() const override {
    return disk_.has_grant ? Status() : Unavailable("/here is not on a tmpfs");
  }

  GrantIdentity grant_identity() const override { return identity_; }

  bool TakeCopied() override {
    return std::exchange(identity_.boot_id, disk_.identity.boot_id) != disk_.identity.boot_id;
  }

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
    ++disk_.identity.file.inode;  // the next open creates a new file
    return {};
  }

  Result<std::string> ReadHint() override {
    if (!disk_.hint.has_value()) return NotFound("no hint");
    return *disk_.hint;
  }

  void KeepHint(std::string text) override {
    if (disk_.hint_writes_fail) {
      hint_failure_ = Unavailable("no space for the hint");
    } else {
      disk_.hint = std::move(text);
    }
  }

  Status TakeHintFailure() override { return std::exchange(hint_failure_, Status()); }

 private:
  MemoryDisk& disk_;
  GrantIdentity identity_;
  Status hint_failure_;
};

}  // namespace firn
