#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/tag/tag_definition.h"
#include "common/time/clock.h"
#include "registry/servers/provider.h"
#include "server/flags/options.h"
#include "server/front/desk/metrics.h"
#include "server/front/desk/server_view.h"
#include "server/lease/lease_desk.h"
#include "server/node/issuing_node.h"
#include "server/operator_setting.h"
#include "server/root_keeper.h"
#include "server/server_listing.h"

namespace firn {

// The issuing node as the front shows it, and the settings that an operator may change.
// Thread-safe.
//
// Offline is only reported, in the provider node and in the status: the server still serves calls.
class NodeView final : public front::ServerView, public front::ServerControl {
 public:
  // All references must outlive this.
  NodeView(const ServerOptions& options, const IssuingNode& node, OperatorSetting& operators,
           const ServerListing& listing, const RootKeeper& root, const Clock& clock);

  front::ServerReport Report() const override;
  uint64_t version() const override;
  ServerPhase phase() const override;
  std::string why_not_ready() const override;
  std::string why_no_tag_is_ready() const override;
  std::optional<MachineId> machine() const override { return node_.status().claim.machine; }
  const Layout& layout() const override { return node_.layout(); }
  RackSplit rack_split() const override { return split_; }
  WallMs ids_end() const override;
  WallMs wall() const override { return clock_.Wall(); }
  front::ShownServers servers() const override { return listing_.Shown(); }
  std::string knowledge() const override;

  // The phase in the list of servers: READY while ids of any tag can be issued.
  ServerPhase announced() const;

  // Both take effect at once. The server writes the setting to the registry once it is reachable.
  Status GoOffline() override { return SetOffline(true); }
  Status GoOnline() override { return SetOffline(false); }

  // Marks the server as draining from now on.
  void Drain() { draining_ = true; }

  // Sets the server's leases, which must outlive all calls. Call before the first report.
  void SetLeases(const LeaseDesk& leases) { leases_ = &leases; }

  // Sets whether the server has refused over 1 % of its last calls as OVERLOADED.
  void SetOverloaded(bool overloaded) { overloaded_ = overloaded; }

  // Records the definition by which the tag is now served.
  void OnTag(const TagDefinition& tag);
  void OnTagDeleted(const std::string& tag);

  // Whether the cluster's data must be restored and the server can print the command for it.
  bool RequiresRestore() const { return RequiresRestore(node_.status()); }
  // Whether the command completes a restore that has begun.
  bool RestoreIsUnfinished() const { return root_.unfinished() != nullptr; }
  // Returns the complete command that repairs the cluster's data; empty if no repair is needed.
  std::string RepairCommand() const { return RepairCommand(node_.status()); }

  // Returns the contents of the provider node. Its cost grows with the number of tags.
  ProviderReport ForProviders() const;

  // Adds metrics of the tags that it serves.
  void AddMetrics(front::MetricsPage& page) const;

 private:
  static void AddMetrics(const std::string& tag, const SegmentStatus& segment,
                         front::MetricsPage& page);

  struct TagShown {
    std::string strategy;
    bool as_issued;
    TagDefinition definition{};  // without a name: not from the registry
  };

  ServerPhase PhaseOf(const IssuingNodeStatus& status,
                      const std::optional<std::string>& why_not) const;
  std::vector<front::TagReport> TagReports(const IssuingNodeStatus& status) const;
  std::string ReasonOf(const IssuingNodeStatus& status, ServerPhase announced) const;
  bool IsAsking(const IssuingNodeStatus& status) const;
  Status SetOffline(bool offline);
  bool RequiresRestore(const IssuingNodeStatus& status) const;
  std::string RepairCommand(const IssuingNodeStatus& status) const;

  const ServerOptions& options_;
  const IssuingNode& node_;
  OperatorSetting& operators_;
  const ServerListing& listing_;
  const RootKeeper& root_;
  const Clock& clock_;
  const RackSplit split_;
  const WallMs started_;
  const LeaseDesk* leases_ = nullptr;
  std::atomic<bool> draining_{false}, overloaded_{false};
  std::atomic<uint64_t> tags_changed_{0};  // number of changes of tags_
  mutable std::shared_mutex mutex_;
  std::map<std::string, TagShown, std::less<>> tags_;  // under mutex_
};

}  // namespace firn
