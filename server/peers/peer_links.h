#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/base/units.h"
#include "server/issue/peer_take.h"
#include "server/issue/segment/owner_source.h"

namespace firn {

// TLS files for connections to other servers.
struct PeerTls {
  std::string cert, key;  // presented to the other server
  std::string ca{};       // CA of the other servers' certificates; empty: the system's CAs
};

// Connections to other servers of the cluster, for takes of numbers that they own: one connection
// and one thread for each address. When a take for a new address arrives, idle connections are
// closed, because their servers may be gone. All takes that wait for a connection are sent before
// the first answer is read, so that slow answers do not add up. If an answer is lost or late, its
// numbers are lost, too; the caller gets an empty range and has to retry. A take is sent again at
// once only if an idle connection turned out to be closed.
//
// A connection uses TLS if the take says that the other server does, so that a cluster can be
// switched to TLS server by server. If this server has no TLS files, it does not verify the other
// server's certificate: it would otherwise send the same take unencrypted. Thread-safe.
class PeerLinks {
 public:
  // Timeouts for connecting and for a part of an answer. Owners never park a take.
  static constexpr Milliseconds kConnect{500}, kAnswer{500};
  // Time after which the callers have to retry. It is shorter than OwnerSource::kHold.
  static constexpr Milliseconds kLate = OwnerSource::kLate;
  // Time without an answer after which a server counts as unreachable, and its connection is
  // closed. Until then a late answer shows that the server is only slow.
  static constexpr Milliseconds kSilent{3'000};
  // Time before a failed connection is tried again.
  static constexpr Milliseconds kPause{50};
  // When a new address is needed, links that have been idle for at least this long are closed.
  static constexpr Milliseconds kKept{60'000};
  static constexpr Milliseconds kRecent{6'000};
  // Maximum time for which Stop waits for a thread that resolves a name or connects. The thread
  // then ends by itself, without an answer to a take.
  static constexpr Milliseconds kStop{1'000};
  static constexpr size_t kQueueMax = 10'000;  // per link; further takes get an empty range at once

  explicit PeerLinks(std::optional<PeerTls> tls, Milliseconds kept = kKept,
                     Milliseconds silent = kSilent);
  ~PeerLinks();  // drops unanswered takes

  // Sends a take; `count` is called at that moment. `done` gets an empty range if the caller has to
  // retry.
  void Take(const std::string& address, PeerTake take, OwnerLink::Count count,
            RangeSource::TakeDone done);

  // Returns the addresses, separated by commas, to which the last connection failed in the last
  // kRecent, or at which a take has waited for an answer for kSilent.
  std::string Unreachable();

  // Ends the threads. Unanswered takes are dropped, and later ones get an empty range.
  void Stop();

 private:
  class Link;

  const std::optional<PeerTls> tls_;
  const Milliseconds kept_, silent_;
  std::mutex mutex_;                                    // guards the members below
  std::map<std::string, std::shared_ptr<Link>> links_;  // by address
  bool stopped_ = false;
  bool lacks_thread_ = false;  // the last new link got no thread, which was logged
};

}  // namespace firn
