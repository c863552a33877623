#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
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

// A whole firn-server without command line and signals: builds the parts in order, starts and ends
// them. Owned by main's thread.
//
//   Open    the state folder and its lock, then the registry, then everything in memory
//   Start   both ports (calls are refused as NOT_READY), then the search for a machine id
//   Drain   tell clients, serve for the notice period, refuse, wait for calls in flight, give the
//           machine id back
class ServerProgram {
 public:
  // Fails, with a sentence, if the node cannot be opened (open_node.h) or the history file is
  // unusable. `clock` and `entropy` must outlive this.
  static Result<std::unique_ptr<ServerProgram>> Open(ServerOptions options, const Clock& clock,
                                                     Entropy& entropy);
  ~ServerProgram();
  ServerProgram(const ServerProgram&) = delete;
  ServerProgram& operator=(const ServerProgram&) = delete;

  // For a user's own stores. Add them before Start.
  SegmentTags& segments() { return node_->segments(); }

  // Fails if an address is in use or a TLS file is invalid.
  Status Start();

  // Re-reads certificates, logins and rights. A file that is refused keeps its earlier content in
  // force.
  front::ReloadReport Reload() { return front_.Reload(); }
  std::vector<front::CertificateReport> certificates() const { return front_.certificates(); }

  // True if the registry was unreachable at the start and then showed other settings than were
  // guessed: this server never issues ids; a newly opened one may.
  bool misguessed() const { return node_->status().misguessed; }

  // The last turn of the thread that is furthest behind, of the control thread and the IO threads;
  // `now` if none runs.
  BootMs OldestTurn(BootMs now) const;

  // Approximate memory of the public port's connections, in bytes.
  size_t connection_bytes() const;

  ServerPhase phase() const { return view_.phase(); }
  // Returns the answer of /readyz, in one line.
  std::string Readiness() const;

  // Ends cleanly; blocks until done. Call once.
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
  // This server's activity, shown by the consoles of all servers.
  ServerPace Pace(BootMs now);
  // The view's report, completed with what only this class knows.
  ProviderReport Report(BootMs now);
  void LogRestoreCommand(BootMs now);
  void RefreshRights(BootMs now);
  // Waits briefly until the registry confirms that the provider node is deleted.
  void Withdraw();
  // Waits until Dubbo's consumers have noticed that this server is no longer registered.
  void LetConsumersLeave() const;
  // Waits until `done`, at most for `patience`.
  void Await(Milliseconds patience, const std::function<bool()>& done) const;
  front::ServerFrontOptions FrontOptions();

  const ServerOptions options_;
  const Clock& clock_;
  const std::shared_ptr<RateBoard> rates_ = std::make_shared<RateBoard>();
  std::shared_ptr<History> history_;  // null: no history
  const std::unique_ptr<IssuingNode> node_;
  OperatorSetting operators_;  // used on the node's control thread, like listing_
  ServerListing listing_;
  RootKeeper root_;
  NodeView view_;
  ProviderPublisher publisher_;  // used on the node's control thread, with its last report
  PaceMeter pace_;    // since the last report; on the control thread, like the next three members
  PaceMeter logged_;  // since the last sample, and whether the server is overloaded
  PaceLog pace_log_;
  PacePublisher pace_publisher_;
  std::optional<ServerPhase> told_phase_;
  BootMs told_at_;
  int64_t history_missing_ = 0;  // records missing at the last report
  std::optional<BootMs> history_lost_at_;
  RestoreNotice restore_notice_;
  bool restore_unfinished_ = false;  // at the last call of LogRestoreCommand
  BootMs refresh_rights_at_;
  std::atomic<int64_t> control_turned_ms_{0};  // 0: never
  ClusterReader cluster_;
  Leases* leases_ = nullptr;  // lease_desk_, if there is a registry
  const std::unique_ptr<LeaseDesk> lease_desk_;
  front::ServerFront front_;
  std::unique_ptr<DubboListing> dubbo_;  // null: this server has no Dubbo consumers
};

}  // namespace firn
