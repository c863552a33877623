#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "registry/state/grant_file.h"
#include "registry/state/state_folder.h"
#include "server/node/kept_tags.h"
#include "tests/sim/node/node_mutants.h"
#include "tests/sim/sim_disk.h"

namespace firn {

// The data that outlive a machine's processes: the state folder with everything that a node stores
// in it. On a static host they include the grant, which also outlives a boot.
struct NodeDisk : SimDisk {
  std::map<std::string, std::string> tags{};        // cached, by cluster
  std::vector<std::function<void()>> tag_writes{};  // pending writes and reads
  int dies_in = 0;                                  // the process dies at this write of the grant;
                                                    // 0: never
  SimStateFolder::Death death = SimStateFolder::Death::kBefore;

  // The grant file exists, and is blank.
  void MakeNew();
  // Returns the grant that a start at time `boot` of its clock resumes without the registry, or
  // nullopt if it must not, or need not, resume one.
  std::optional<Grant> GoesOnIn(BootMs boot);

  // Runs the pending work of the thread that caches the tags.
  void WriteTags();
  // Mounts the file system again, under another device number.
  void Remount() { ++identity.file.device, ++identity.lock.device; }
  // Restores the grant's state before the last `writes_ago` writes in the same file, if it was
  // written in this boot.
  void BringBack(size_t writes_ago);
};

// A process's view of the disk. It writes nothing once `dead` is true.
class NodeFolder final : public StateFolder {
 public:
  // All references must outlive it.
  NodeFolder(NodeDisk& disk, const bool& dead, NodeMutant mutant);

  Status has_grant() const override {
    return disk_.no_grant ? Unavailable("no tmpfs available") : Status();
  }
  GrantIdentity grant_identity() const override { return identity_; }
  Result<std::string> ReadGrant() override;
  Status WriteGrant(size_t offset, std::string_view bytes, Durability durability) override;
  Status RemoveGrant() override;
  Result<std::string> ReadHint() override;
  void KeepHint(std::string text) override;
  Status TakeHintFailure() override { return {}; }

 private:
  void Put(size_t offset, std::string_view bytes);

  NodeDisk& disk_;
  const bool& dead_;
  const NodeMutant mutant_;
  GrantIdentity identity_;
};

class NodeMemory final : public TagMemory {
 public:
  // All references must outlive it.
  NodeMemory(NodeDisk& disk, NodeMutant mutant) : disk_(disk), mutant_(mutant) {}

  void Read(const std::string& uuid, Loaded done) override;
  void Keep(const std::string& uuid, const KnownTags& tags, Kept done) override;
  void SetControl(const PostToControl& control) override { control_ = control; }

 private:
  Result<KnownTags> ReadNow(const std::string& uuid) const;

  NodeDisk& disk_;
  const NodeMutant mutant_;
  PostToControl control_;
};

}  // namespace firn
