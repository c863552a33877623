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
#include "server/issue/segment/range_source.h"

namespace firn {

// How to encrypt the connections to other servers.
struct PeerTls {
  std::string cert, key;  // shown to the other server
  std::string ca{};       // the authority of the other servers; empty: the system's authorities
};

// Connections to other servers of the cluster, for takes of numbers that they own: one connection
// and one thread for each address. All takes that wait for a connection are sent before the first
// answer is read, so that slow answers do not add up. If an answer is lost, so are its numbers, and
// the asker gets an empty range and asks again. Only takes that found an idle connection closed are
// sent again at once. Thread-safe.
class PeerLinks {
 public:
  // How long a connection may take, and an answer: owners never park a take.
  static constexpr Milliseconds kConnect{500}, kAnswer{500};
  // How long a failed connection is not tried again.
  static constexpr Milliseconds kPause{50};
  static constexpr size_t kQueueMax = 10'000;  // takes; more are answered at once with "ask again"

  explicit PeerLinks(std::optional<PeerTls> tls);
  ~PeerLinks();  // drops what is not answered

  void Take(const std::string& address, PeerTake take, RangeSource::TakeDone done);

  // Ends the threads. Later takes are answered with "ask again".
  void Stop();

 private:
  class Link;

  const std::optional<PeerTls> tls_;
  std::mutex mutex_;                                    // guards the members below
  std::map<std::string, std::unique_ptr<Link>> links_;  // by address
  bool stopped_ = false;
};

}  // namespace firn
