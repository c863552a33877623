#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/front/desk/backend.h"
#include "server/front/desk/cluster_view.h"
#include "server/front/desk/desk_counters.h"
#include "server/front/desk/metrics.h"
#include "server/front/desk/server_view.h"
#include "server/front/desk/status_cache.h"
#include "server/front/dubbo/dubbo_protocol.h"
#include "server/front/http/http_handlers.h"
#include "server/front/net/front_door.h"
#include "server/front/redis/redis_logins.h"
#include "server/front/reloads.h"
#include "server/issue/issuer.h"
#include "server/lease/lease_desk.h"

namespace firn::front {

struct ServerFrontOptions {
  FrontDoorOptions listen;
  // Empty: the public port serves the admin side as well.
  std::optional<FrontDoorOptions> admin{};
  std::vector<std::string> admin_hosts{};  // host names that requests to the admin side may use
  std::vector<std::string> http_hosts{};   // also of the public side; empty: all
  std::string default_tag = "default";
  // The rights of clients by their names, see TagRights; empty: every client has all rights.
  std::string rights_file{};
  bool redis = true;              // serve the Redis protocol on the public port
  bool redis_incr_64bit = false;  // INCR returns numbers of 2^53 and above
  // Users and passwords of the Redis protocol, see RedisLogins; empty: it needs no login.
  std::string redis_auth_file{};
  TokenCheck tinyid_tokens{};         // empty: no token is required
  std::optional<VestaOrder> dubbo{};  // empty: the public port does not serve Dubbo
  // Appends the metrics of other parts to /metrics. Any thread, must not block.
  std::function<void(MetricsPage&)> more_metrics{};
  // Returns the data of the console's charts, as JSON; empty: no charts. Any thread, must not
  // block.
  std::function<std::string()> history{};
  // See Backend::take_owned; empty: this program takes no part in owning tags.
  std::function<Result<Range>(const PeerTake&)> take_owned{};
  // For the admin side; null: it shows only this server. Must outlive the front.
  ClusterView* cluster = nullptr;
  // For both sides; null: leases are refused. Must outlive the front.
  LeaseDesk* leases = nullptr;
};

// When a client must request the list of servers again: 50 ms for each connection of this server,
// from 2 s to 60 s, varied at random by up to a fifth.
Milliseconds AskAgain(uint64_t connections, Entropy& entropy);

// Both ports of a server, with everything behind them: the public one for Thrift, HTTP, Redis and,
// if enabled, Dubbo; the admin one for operators.
//
// Only the owner may call Start, Shutdown and Reload; the rest is thread-safe.
class ServerFront {
 public:
  // All references must outlive it.
  ServerFront(ServerFrontOptions options, Issuer& issuer, const ServerView& view,
              ServerControl& control, const Clock& clock);
  // Closes at once what Shutdown has not closed.
  ~ServerFront();
  ServerFront(const ServerFront&) = delete;
  ServerFront& operator=(const ServerFront&) = delete;

  // Listens on both ports and serves. A failure has no side effects.
  Status Start();

  // Call after Start. The admin port equals the public one if they are the same.
  uint16_t port() const { return public_.port(); }
  uint16_t admin_port() const { return admin_ ? admin_->port() : port(); }

  // Reads certificates and keys again, for new connections, then logins and rights. If a file is
  // refused, for example for an expired certificate, its earlier content stays in use.
  ReloadReport Reload() { return reloads_.Run(clock_.Wall()); }
  std::vector<CertificateReport> certificates() const;
  // Reads --rights_file again if it has changed. Any thread.
  Status RefreshRights();

  // Retries the waiting calls of this tag: there may be ids.
  void WakeParked(std::string_view tag) { public_.WakeParked(backend_.issuer.Resolve(tag)); }

  // Reserves places of the public port for connections of other servers. Any thread.
  void Reserve(size_t places) { public_.Reserve(places); }

  // Sets whether Dubbo's consumers are to call other servers. Each connection reports a change
  // behind its next answer.
  void SetDubboReadOnly(bool read_only) { dubbo_.read_only = read_only; }

  // Like FrontDoor::Shutdown, for both ports; the admin port closes last.
  void Shutdown(Milliseconds patience);

  Totals totals() const { return public_.totals(); }  // of the public port
  // Like FrontDoor::OldestTurn, for both ports.
  BootMs OldestTurn(BootMs now) const {
    return std::min(public_.OldestTurn(now), admin_ ? admin_->OldestTurn(now) : now);
  }
  // Calls and refusals, in total and by protocol, with the open connections of each protocol.
  DeskCounters::Sums sums() const;
  std::string Metrics() const;  // the page /metrics

 private:
  // Objects of one IO thread of the public port.
  struct Desk;

  // Adds the admin side's handlers to a port's handlers.
  void AddAdmin(std::vector<std::unique_ptr<HttpHandler>>& handlers);
  Status ReloadLogins();
  // Registers the files that a reload reads again.
  void ListFiles();
  void DescribeDubbo(MetricsPage& page) const;
  ProtocolSet PublicProtocols();
  ProtocolSet AdminProtocols();

  const ServerFrontOptions options_;
  ServerControl& control_;
  const Clock& clock_;
  const std::unique_ptr<TagRights> rights_;    // null: everyone may take ids of all tags
  const std::unique_ptr<RedisLogins> logins_;  // null: the Redis protocol needs no login
  Reloads reloads_;
  DubboState dubbo_;
  const StatusCache status_;
  const Backend backend_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Desk>> desks_;  // under mutex_; all but the counters are used by one
                                              // IO thread
  FrontDoor public_;                          // ends before the members that it uses
  std::optional<FrontDoor> admin_;
};

}  // namespace firn::front
