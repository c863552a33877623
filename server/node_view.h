#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "common/tag/tag_definition.h"
#include "common/time/clock.h"
#include "registry/servers/provider.h"
#include "server/flags/options.h"
#include "server/front/desk/metrics.h"
#include "server/front/desk/server_view.h"
#include "server/node/issuing_node.h"
#include "server/operator_word.h"
#include "server/server_listing.h"

namespace firn {

// What the front door shows of the issuing node behind it, and what an operator may do to it.
// Thread-safe.
//
// Going offline changes what this server says of itself, in its provider node and in its status;
// it goes on serving whoever asks.
class NodeView final : public front::ServerView, public front::ServerControl {
 public:
  // All references must outlive it.
  NodeView(const ServerOptions& options, const IssuingNode& node, OperatorWord& operators,
           const ServerListing& listing, const Clock& clock);

  front::ServerReport Report() const override;
  uint64_t version() const override;
  ServerPhase phase() const override;
  std::string why_not_ready() const override;
  std::optional<MachineId> machine() const override { return node_.status().claim.machine; }
  const Layout& layout() const override { return node_.layout(); }
  RackSplit rack_split() const override { return split_; }
  WallMs wall() const override { return clock_.Wall(); }
  front::ShownServers servers() const override { return listing_.Shown(); }

  // Counts at once; the registry is told as soon as it is there.
  Status GoOffline() override { return Say(true); }
  Status GoOnline() override { return Say(false); }

  // From now on the server is on its way out.
  void Drain() { draining_ = true; }

  // The tag is served like this from now on.
  void OnTag(const TagDefinition& tag);
  void OnTagDeleted(const std::string& tag);

  // The command that puts the cluster's data right, whole, for an operator to paste; empty while
  // nothing of the kind is wanted.
  std::string WayOut() const;

  // What the provider node shall say; all of it costs as much as there are tags.
  ProviderReport ForProviders() const;

  // What the tags that it serves have to say.
  void AddMetrics(front::MetricsPage& page) const;

 private:
  static void AddMetrics(const std::string& tag, const SegmentStatus& segment,
                         front::MetricsPage& page);

  struct TagShown {
    std::string strategy;
    bool as_issued;
    TagDefinition definition{};  // without a name: the registry has none
  };

  ServerPhase PhaseOf(const IssuingNodeStatus& status) const;
  std::vector<front::TagReport> TagReports(const IssuingNodeStatus& status) const;
  bool IsAsking(const IssuingNodeStatus& status) const;
  Status Say(bool offline);
  std::string WayOut(const IssuingNodeStatus& status) const;

  const ServerOptions& options_;
  const IssuingNode& node_;
  OperatorWord& operators_;
  const ServerListing& listing_;
  const Clock& clock_;
  const RackSplit split_;
  const WallMs started_;
  std::atomic<bool> draining_{false};
  std::atomic<uint64_t> tags_changed_{0};  // times that tags_ did
  mutable std::shared_mutex mutex_;
  std::map<std::string, TagShown, std::less<>> tags_;  // under mutex_
};

}  // namespace firn
