#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/servers/pace_publisher.h"
#include "registry/servers/provider_publisher.h"
#include "server/cluster_reader.h"
#include "server/dubbo_listing.h"
#include "server/flags/options.h"
#include "server/front/server_front.h"
#include "server/lease/leases.h"
#include "server/node/issuing_node.h"
#include "server/node_view.h"
#include "server/operator_setting.h"
#include "server/pace_log.h"
#include "server/plugins/history.h"
#include "server/plugins/key_ring.h"
#include "server/plugins/rate.h"
#include "server/restore_notice.h"
#include "server/root_keeper.h"
#include "server/server_listing.h"

namespace firn {

// A whole firn-server, without its command line and its signals: builds the parts in order, starts
// and ends them. Owned by main's thread.
//
//   Open    the state folder with its lock, then the registry, then everything in memory
//   Start   both ports (calls are refused as NOT_READY), then the search for a machine id
//   Drain   tell clients, serve for the notice period, refuse, wait for calls in flight, give the
//           machine id back
class ServerProgram {
 public:
  // Fails, with a sentence, if the node cannot be opened (see open_node.h) or the history file is
  // unusable. `clock` and `entropy` must outlive it.
  static Result<std::unique_ptr<ServerProgram>> Open(ServerOptions options, const Clock& clock,
                                                     Entropy& entropy);
  ~ServerProgram();
  ServerProgram(const ServerProgram&) = delete;
  ServerProgram& operator=(const ServerProgram&) = delete;

  // A user's own stores are added here, before Start.
  SegmentTags& segments() { return node_->segments(); }

  // Fails if an address is taken or a TLS file is invalid.
  Status Start();

  // Re-reads certificates, logins and rights. What is refused leaves the earlier content in force.
  front::ReloadReport Reload() { return front_.Reload(); }
  std::vector<front::CertificateReport> certificates() const { return front_.certificates(); }

  // True if the registry was unreachable at the start and the cluster turned out to be another than
  // was guessed: this server will never issue; a newly opened one may.
  bool misguessed() const { return node_->status().misguessed; }

  // When the thread that is most behind has turned last, of the control thread and the IO threads.
  // Returns `now` if none runs.
  BootMs OldestTurn(BootMs now) const;

  // About how many bytes the connections of the public port hold.
  size_t connection_bytes() const;

  ServerPhase phase() const { return view_.phase(); }
  // Returns what /readyz answers, in one line.
  std::string Readiness() const;

  // Ends cleanly; blocks until it is done. Call once.
  void Drain();

 private:
  ServerProgram(ServerOptions options, const Clock& clock, Entropy& entropy,
                std::unique_ptr<IssuingNode> node);

  std::unique_ptr<LeaseDesk> OpenLeases(Entropy& entropy);
  void TickLeases(Now now);
  Status AddPlugins();
  Status AddDubbo(Entropy& entropy);
  void StartDubbo();
  void AddMetrics(front::MetricsPage& page) const;
  void Publish(Now now);
  // This server's activity, for the consoles of all servers.
  ServerPace Pace(BootMs now);
  // The view's report, with what only the program knows.
  ProviderReport Report(BootMs now);
  void LogRestoreCommand(BootMs now);
  void RefreshRights(BootMs now);
  // Waits briefly until the registry confirms that the provider node is deleted.
  void Withdraw();
  // Waits until Dubbo's consumers have learned that this server is not registered any more.
  void LetConsumersLeave() const;
  void LetClientsLeave() const;
  front::ServerFrontOptions FrontOptions();

  const ServerOptions options_;
  const Clock& clock_;
  const std::shared_ptr<RateBoard> rates_ = std::make_shared<RateBoard>();
  std::shared_ptr<History> history_;  // null: none is written
  const std::unique_ptr<IssuingNode> node_;
  OperatorSetting operators_;  // used on the node's control thread, like the next member
  ServerListing listing_;
  RootKeeper root_;
  NodeView view_;
  ProviderPublisher publisher_;  // used on the node's control thread, with its last report
  PaceMeter pace_;               // since the last report; likewise, like the next three members
  PaceMeter logged_;             // since the last sample
  PaceLog pace_log_;
  PacePublisher pace_publisher_;
  std::optional<ServerPhase> told_phase_;
  BootMs told_at_;
  int64_t history_missing_ = 0;  // records, when it was reported last
  std::optional<BootMs> history_lost_at_;
  RestoreNotice restore_notice_;
  BootMs refresh_rights_at_;
  std::atomic<int64_t> control_turned_ms_{0};  // 0: not yet
  ClusterReader cluster_;
  Leases* leases_ = nullptr;  // the next member, if there is a registry
  const std::unique_ptr<LeaseDesk> lease_desk_;
  front::ServerFront front_;
  std::unique_ptr<DubboListing> dubbo_;  // null: this server has no Dubbo consumers
};

}  // namespace firn
