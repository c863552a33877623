#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/id/rack_split.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/audit.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/servers/provider.h"

namespace firn {

// The result of one reading of a slot.
struct SlotAudit {
  AuditedSlot slot;
  std::vector<AuditFinding> findings{};
};

// Pure. `slot` identifies the slot; `audit` has the root node. Bounds are compared with the
// cluster's time when the registry's clock shows `now`.
SlotAudit InspectSlot(AuditedSlot slot, const Node& record, const std::optional<Node>& live,
                      const Audit& audit, WallMs now);

// Reads a tree into an Audit, part by part. Fails only if the registry does not answer.
//
// Servers continue while it reads. If a server renews its claim between two reads, the audit could
// take the older read for a loss of data. So it reads servers' reports before the records, and
// re-reads the nodes of an apparent fault before it reports the fault.
class Auditor {
 public:
  Auditor(BlockingCoordinator& registry, WallMs now, const StatusSource& ask)
      : registry_(registry), now_(now), ask_(ask) {}

  Result<Audit> Run(bool with_owners) {
    FIRN_TRY(ReadRoot());
    FIRN_TRY(ReadProviders());
    Ask();
    FIRN_TRY(ReadConfigurators());
    FIRN_TRY(ReadRacks());
    CompareRacks();
    CompareNonces();
    CountForLeases();
    FIRN_TRY(CompareProviders());
    CountAbsent();
    FIRN_TRY(ReadFolders());
    if (audit_.meta) {
      FIRN_TRY(ReadTags());
      if (with_owners) FIRN_TRY(ReadOwners());
    }
    return std::move(audit_);
  }

 private:
  void Fault(Urgency urgency, std::string sentence, std::string fix) {
    audit_.findings.push_back({urgency, std::move(sentence), std::move(fix)});
  }
  // Adds a fault that `firn restore` repairs.
  void Loss(std::string sentence) {
    audit_.findings.push_back({Urgency::kData, std::move(sentence), {}, /*restore=*/true});
  }
  // Adds a missing node, which is not a loss while the cluster is being created.
  void Missing(std::string sentence) {
    if (!half_made_) Loss(std::move(sentence));
  }

  // Reads a node. Empty if it is missing or damaged; damage is added as a loss.
  Result<std::optional<Node>> Find(const std::string& path) {
    Result<Node> node = registry_.Read(path);
    if (node.ok()) return std::optional<Node>(std::move(node).value());
    if (node.code() == Code::kNotFound) return std::optional<Node>();
    if (node.code() != Code::kCorrupt) return node.status();
    Loss(node.status().message());
    return std::optional<Node>();
  }

  Status ReadRoot();
  Status ReadEras(const Nonce& current);
  Status ReadFolders();
  Status ReadRacks();
  Status ReadRack(uint32_t rack);
  void Keep(SlotAudit look);
  // Empty if there is no record.
  Result<std::optional<SlotAudit>> LookAgain(Slot slot);
  Result<std::optional<SlotAudit>> LookAt(Slot slot, const Result<Node>& record_node,
                                          const Result<Node>& live_node);
  Status ReadProviders();
  // Requests the status of each server's current process, if there is a StatusSource.
  void Ask();
  bool IsPresent(size_t provider) const;
  // Empty if there is none; kCorrupt if it cannot be parsed.
  Result<std::optional<ProviderReport>> ReportOf(const std::string& node_name);
  Status ReadConfigurators();
  void NoteOffline(const std::string& address, const Configurator& setting);
  void CompareRacks();
  void CompareNonces();
  // Finds racks in which leases for programs will soon run out.
  void CountForLeases();
  // Adds a finding for each holder that left without giving its machine id back.
  void CountAbsent();
  Status CompareProviders();
  Status CompareHeld(const AuditedProvider& audited, const HeldMachine& held);
  // Adds the faults of tags: nodes that are not tags, or have an unguarded version; ledgers below
  // the value that a server has seen; numbers dated later than `now_`; tags with few numbers left,
  // or none; obfuscated tags whose ids outgrow their width within a year (within ten: a note). Must
  // be called after ReadProviders: servers continue meanwhile, and ledgers only rise.
  Status ReadTags();
  // Adds a fault for each partition without an owner whose tags need one. Must be called after
  // ReadTags and ReadProviders.
  Status ReadOwners();
  void NoteOwned(const StoredTag& tag);
  AuditedSlot* SlotOf(MachineId machine);
  bool ClaimedByAnother(const std::string& address, WallMs bound, const AuditedSlot& slot) const;
  void CompareAgain(const std::string& address, WallMs bound, const AuditedSlot& slot);

  BlockingCoordinator& registry_;
  const WallMs now_;
  const StatusSource& ask_;
  Audit audit_;
  std::vector<int64_t> created_;           // order in which the providers' nodes were created
  std::map<std::string, int64_t> latest_;  // ... the last of each address
  std::optional<RackSplit> split_;
  // The tags of a partition that need an owner, and the time of the earliest definition.
  struct Owned {
    std::vector<std::string> tags;
    WallMs since;
  };
  std::map<size_t, Owned> owned_;  // by partition
  bool half_made_ = false;
};

}  // namespace firn
