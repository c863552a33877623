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

// Files in PEM form.
struct TlsFiles {
  std::string cert;         // the server's certificate, with those that lead to its authority
  std::string key;          // its private key
  std::string client_ca{};  // not empty: only clients with a certificate of this authority get in
};

// Reads the files. kInvalid names the file at fault. Defined in tls.cc.
Status CheckTls(const TlsFiles& files);

struct FrontDoorOptions {
  std::string host = "127.0.0.1";  // an address of this machine, or 0.0.0.0 or ::
  uint16_t port = 0;               // 0: a free one
  // Path of a Unix socket on which it listens as well, without TLS; empty: none. The file's
  // permissions decide who may connect.
  std::string unix_path{};
  mode_t unix_mode = 0660;
  int io_threads = 1;
  Limits limits{};
  std::optional<TlsFiles> tls{};
  // Takes lines for people about peers that speak nothing that is served. Any IO thread, rarely.
  std::function<void(const std::string&)> log{};
};

// The listener: one port for all protocols, a number of IO threads with their own sockets on it,
// and every connection that comes in. What is spoken is up to the protocols that it is given.
//
// Sharp edge: with more than one IO thread the port is opened for sharing, so the kernel would let
// a second server of the same user in as well. Start looks for one first, but two servers that
// start at the same moment can miss each other: hold a lock of your own.
//
// Thread-safe except Start and Shutdown, which belong to its owner.
class FrontDoor {
 public:
  // Makes the protocols of one IO thread; called once for each, in Start.
  using MakeProtocols = std::function<ProtocolSet()>;

  // `clock` must outlive it.
  FrontDoor(FrontDoorOptions options, const Clock& clock, MakeProtocols make_protocols);
  // Ends at once what Shutdown has not ended.
  ~FrontDoor();
  FrontDoor(const FrontDoor&) = delete;
  FrontDoor& operator=(const FrontDoor&) = delete;

  // Listens and serves. Fails, with nothing left behind, when the address is taken or not ours.
  Status Start();

  // Reads the TLS files again, for new connections. kInvalid names the file at fault, also one with
  // a certificate that has expired, and leaves in force what is. Ok without TLS.
  Status ReloadTls();

  // When the certificates in use expire; none without TLS.
  std::optional<TlsExpiry> tls_expiry() const;

  // The port it listens on, after Start.
  uint16_t port() const { return port_; }

  // Accepts no more, answers what has come, ends every connection that owes nothing, and the rest
  // after `patience`. Returns when all threads have ended; may be called again.
  void Shutdown(Milliseconds patience);

  // There may be ids for calls that wait for this (DoorCall::waits_for): tries them again. Cheap
  // enough to be called whenever a range has arrived.
  void WakeParked(const void* what);

  Totals totals() const;

  // When the IO thread that is most behind has turned last: a few times a second, unless it hangs.
  // Returns `now` if no thread runs.
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
