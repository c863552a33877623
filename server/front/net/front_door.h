#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "common/base/status.h"
#include "common/time/clock.h"
#include "server/front/net/counters.h"
#include "server/front/net/limits.h"
#include "server/front/net/places.h"
#include "server/front/net/protocol.h"
#include "server/front/net/tls_expiry.h"
#include "server/front/net/unix_socket.h"

namespace firn::front {

class IoLoop;
class Tls;

// TLS files in PEM format.
struct TlsFiles {
  std::string cert;         // the server's certificate, followed by the intermediate certificates
  std::string key;          // the private key of `cert`
  std::string client_ca{};  // not empty: clients must present a certificate of this authority
};

// Reads the files. kInvalid names the invalid file. Defined in tls.cc.
Status CheckTls(const TlsFiles& files);

struct FrontDoorOptions {
  std::string host = "127.0.0.1";  // an address of this machine, or 0.0.0.0 or ::
  uint16_t port = 0;               // 0: a free one
  // Path of a Unix socket that accepts connections as well, without TLS; empty: none. The file's
  // permissions decide who may connect.
  std::string unix_path{};
  mode_t unix_mode = 0660;
  int io_threads = 1;
  Limits limits{};
  std::optional<TlsFiles> tls{};
  // Takes log lines about peers that use no supported protocol. Called rarely, by any IO thread.
  std::function<void(const std::string&)> log{};
};

// The listener: one port for all protocols, IO threads with their own sockets on that port, and all
// connections. Its protocols decide how requests are answered.
//
// Sharp edge: with more than one IO thread the port is opened for sharing, so the kernel would also
// admit a second server of the same user. Start probes for one first, but two servers that start at
// the same moment may not detect each other: the caller must hold a lock as well.
//
// Thread-safe except Start and Shutdown, which only the owner may call.
class FrontDoor {
 public:
  // Creates the protocols of one IO thread. Start calls it once for each.
  using MakeProtocols = std::function<ProtocolSet()>;

  // `clock` must outlive it.
  FrontDoor(FrontDoorOptions options, const Clock& clock, MakeProtocols make_protocols);
  // Closes at once what Shutdown has not closed.
  ~FrontDoor();
  FrontDoor(const FrontDoor&) = delete;
  FrontDoor& operator=(const FrontDoor&) = delete;

  // Listens and serves. Fails without side effects if the address is in use or not of this machine.
  Status Start();

  // Reads the TLS files again, for new connections. kInvalid names the invalid file, also one with
  // an expired certificate; the earlier files then stay in use. Ok without TLS.
  Status ReloadTls();

  // When the certificates in use expire; empty without TLS.
  std::optional<TlsExpiry> tls_expiry() const;

  // The port, after Start.
  uint16_t port() const { return port_; }

  // Stops accepting, answers the requests that have arrived, and closes each connection when all
  // its answers are sent, or after `patience`. Returns when all threads have ended; may be called
  // again.
  void Shutdown(Milliseconds patience);

  // Reserves places for connections of other servers, see Places.
  void Reserve(size_t places) { places_.SetReserved(places); }

  // Retries the parked calls that wait for this (DoorCall::waits_for): there may be ids for them.
  // Cheap enough to call whenever a range has arrived.
  void WakeParked(const void* what);

  Totals totals() const;

  // The time of the last turn of the IO thread that is furthest behind. Each thread takes turns a
  // few times a second, unless it hangs. Returns `now` if no thread runs.
  BootMs OldestTurn(BootMs now) const;

 private:
  Status Open();
  Status OpenUnix();
  std::unique_ptr<IoLoop> MakeLoop();

  const FrontDoorOptions options_;
  const Clock& clock_;
  const MakeProtocols make_protocols_;
  const std::unique_ptr<Tls> tls_;  // null: none
  Places places_{options_.limits};
  uint16_t port_ = 0;
  std::unique_ptr<UnixSocket> unix_;  // null: none
  std::vector<std::unique_ptr<IoLoop>> loops_;
  std::vector<std::thread> threads_;
};

}  // namespace firn::front
