#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/servers/pace_publisher.h"
#include "registry/servers/provider_publisher.h"
#include "server/cluster_looker.h"
#include "server/flags/options.h"
#include "server/front/server_front.h"
#include "server/node/issuing_node.h"
#include "server/node_view.h"
#include "server/operator_word.h"
#include "server/pace_meter.h"
#include "server/plugins/history.h"
#include "server/plugins/key_ring.h"
#include "server/plugins/rate.h"
#include "server/server_listing.h"

namespace firn {

// A whole firn-server, without its command line and its signals: what is built in which order, and
// how it starts and ends. Owned by main's thread.
//
//   Open    the state folder with its lock, then the registry, then everything in memory
//   Start   both doors (calls are refused as NOT_READY), then the search for a machine id
//   Drain   tell clients, go on serving for the notice, refuse, wait for what is in flight, give
//           the machine id back
class ServerProgram {
 public:
  // Fails with a sentence when the node cannot be opened (see open_node.h) or the history cannot
  // be kept. `clock` and `entropy` must outlive it.
  static Result<std::unique_ptr<ServerProgram>> Open(ServerOptions options, const Clock& clock,
                                                     Entropy& entropy);
  ~ServerProgram();
  ServerProgram(const ServerProgram&) = delete;
  ServerProgram& operator=(const ServerProgram&) = delete;

  // Stores of a user's own go in here, before Start.
  SegmentTags& segments() { return node_->segments(); }

  // Fails when an address is taken or a file of TLS is bad.
  Status Start();

  // Reads certificates and rights again. A failure leaves those in use.
  Status Reload() { return front_.ReloadTls(); }
  std::vector<front::CertificateReport> certificates() const { return front_.certificates(); }

  // The registry was away at the start, and the cluster is another than was guessed: this server
  // will never issue, and one that is opened now may.
  bool misguessed() const { return node_->status().misguessed; }

  // What /readyz answers, in one line.
  std::string Readiness() const;

  // The clean end; blocks until it is done. Once.
  void Drain();

 private:
  ServerProgram(ServerOptions options, const Clock& clock, Entropy& entropy,
                std::unique_ptr<IssuingNode> node);

  Status AddPlugins();
  void AddMetrics(front::MetricsPage& page) const;
  void Publish(Now now);
  void TellWayOut(BootMs now);
  void LookAtRights(BootMs now);
  // Waits a moment for the registry to say that the provider node is gone.
  void Withdraw();
  void LetClientsLeave() const;
  front::ServerFrontOptions FrontOptions();

  const ServerOptions options_;
  const Clock& clock_;
  const std::shared_ptr<RateBoard> rates_ = std::make_shared<RateBoard>();
  std::shared_ptr<History> history_;  // null: none is kept
  const std::unique_ptr<IssuingNode> node_;
  OperatorWord operators_;  // on the node's control thread, as the next
  ServerListing listing_;
  NodeView view_;
  ProviderPublisher publisher_;  // on the node's control thread, and what it was told last
  PaceMeter pace_;               // likewise, as the next
  PacePublisher pace_publisher_;
  std::optional<ServerPhase> told_phase_;
  BootMs told_at_;
  BootMs tell_way_out_at_, look_at_rights_at_;
  ClusterLooker cluster_;
  front::ServerFront front_;
};

}  // namespace firn
