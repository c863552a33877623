#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/call_report.h"
#include "client/client_options.h"
#include "common/base/units.h"
#include "tests/client/lease/fake_leases.h"

namespace firn {

// How a fake server handles requests for ids, and for its status if `in_status`.
struct Behaviour {
  enum class Kind : uint8_t {
    kServe,
    kSilent,         // reads the request and does not answer
    kReset,          // resets the connection
    kClose,          // closes the connection cleanly
    kHalf,           // sends half an answer, then closes
    kDrip,           // sends an answer byte by byte, with `delay` before each
    kGarbage,        // sends bytes that are not an answer
    kForeign,        // its status names another cluster
    kUnaware,        // its status does not name a cluster
    kOtherLayout,    // its status names another layout
    kNoMethod,       // is another service, which has none of the methods
    kHttp,           // answers every request in HTTP
    kZeroIds,        // returns the id 0
    kFarTime,        // returns ids whose time is decades away from its clock
    kWrongCount,     // returns one id too few, or an empty text
    kTwice,          // returns an id twice in an answer with several
    kOtherSequence,  // answers with another call's sequence id
    kEmpty,          // answers with neither ids nor a refusal
    kRepeat,         // sends every answer twice
    kRefuse          // refuses with `reason` and `retry_after`
  };
  Kind kind = Kind::kServe;
  Milliseconds delay{0};  // before it answers
  Reason reason = Reason::kInternal;
  Milliseconds retry_after{0};
  std::string only_tag{};  // the only refused tag; empty: all. A server that refuses all with
                           // DRAINING also reports draining
  bool another_may_help = false;  // field of a refusal
  bool in_status = false;         // handles requests for its status in the same way
};

// A Thrift server that misbehaves as the test requests. Listens on 127.0.0.1, with a thread for
// each connection. Thread-safe.
class FakeServer {
 public:
  static constexpr const char* kUuid = "11111111-2222-3333-4444-555555555555";

  FakeServer();
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  // Returns the TLS options for all fake servers of this process, if the environment has
  // FIRN_FAKE_SERVERS_TLS.
  static std::optional<TlsOptions> Tls();

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // Takes effect with the next request.
  void Behave(Behaviour behaviour);
  void Behave(Behaviour::Kind kind) { Behave(Behaviour{.kind = kind}); }

  void BehaveAboutLeases(FakeLeases leases);
  // Returns the received requests about leases: "lease TOKEN NAME", "renew LEASE TURN ACKNOWLEDGED"
  // and "release LEASE TURN USED_TICK".
  std::vector<std::string> LeaseRequests();

  // Sets the cluster in its status, by default kUuid. Call it before the first request.
  void BelongTo(std::string uuid) { uuid_ = std::move(uuid); }

  // Closes every connection and refuses new ones; accepts them again on the same port.
  void Down();
  void Up();
  // Closes every connection; accepts new ones.
  void CloseConnections();

  // Number of received requests for ids, and of returned ids.
  int64_t requests() const { return requests_; }
  int64_t given() const { return given_; }
  int connections() const { return accepted_; }  // accepted since the start
  int open_connections() const { return open_; }

 private:
  class Service;
  struct Peer {
    explicit Peer(int socket) : fd(socket) {}
    const int fd;
    std::atomic<bool> gone = false;
    std::thread thread{};
  };

  void Listen();
  void Accept(int listener);
  void Serve(int fd);
  // Under mutex_: connections that have ended.
  void Forget();
  // Returns false if the connection must end.
  bool AnswerFrame(int fd, std::string frame);
  bool Say(int fd, const std::string& bytes, const Behaviour& behaviour);
  // Returns false if the server stops meanwhile.
  bool Wait(Milliseconds time);
  Behaviour behaviour();
  FakeLeases leases();
  void Note(std::string lease_request);

  int port_ = 0;
  std::string uuid_ = kUuid;
  const int64_t first_id_;
  std::atomic<int64_t> requests_ = 0, given_ = 0;
  std::atomic<int> accepted_ = 0, open_ = 0;

  std::mutex mutex_;
  std::condition_variable down_;
  bool up_ = false;  // under mutex_, as all below
  Behaviour behaviour_;
  FakeLeases leases_;
  std::vector<std::string> lease_requests_;
  int listener_ = -1;
  std::list<Peer> peers_;
  std::thread thread_;
};

// Returns list://... with these servers.
std::string ListOf(const std::vector<FakeServer*>& servers);

}  // namespace firn
