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

namespace firn {

// What a fake server does with a request for ids, and with one for its status when it says so.
struct Behaviour {
  enum class Kind : uint8_t {
    kServe,
    kSilent,         // takes the request and says nothing
    kReset,          // resets the connection
    kClose,          // closes it in an orderly way
    kHalf,           // says half an answer, then closes
    kDrip,           // says an answer byte by byte, with `delay` before each
    kGarbage,        // says something that is no answer
    kForeign,        // its status is another cluster's
    kUnaware,        // its status does not say which cluster it is of
    kOtherLayout,    // its status names another layout
    kNoMethod,       // is some other service: it knows nothing that it is asked
    kHttp,           // speaks HTTP, whatever it is asked
    kZeroIds,        // gives the id 0
    kFarTime,        // gives ids whose time is decades away from its clock
    kWrongCount,     // gives one id too few; of texts, an empty one
    kTwice,          // gives one id twice in an answer of several
    kOtherSequence,  // answers under another call's sequence id
    kEmpty,          // answers with neither ids nor a refusal
    kRepeat,         // says every answer a second time
    kRefuse          // with `reason` and `retry_after`
  };
  Kind kind = Kind::kServe;
  Milliseconds delay{0};  // before it answers
  Reason reason = Reason::kInternal;
  Milliseconds retry_after{0};
  std::string only_tag{};  // that is refused; empty: all are. Whoever refuses all with DRAINING
                           // says in its status that it drains
  bool another_may_help = false;  // of a refusal
  bool in_status = false;         // does the same when it is asked for its status
};

// A server that speaks the wire contract and misbehaves as a test says. On 127.0.0.1; a thread for
// each connection. Thread-safe.
class FakeServer {
 public:
  static constexpr const char* kUuid = "11111111-2222-3333-4444-555555555555";

  FakeServer();
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  // How to speak to all fake servers of this process: by TLS where the environment has
  // FIRN_FAKE_SERVERS_TLS.
  static std::optional<TlsOptions> Tls();

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // From the next request on.
  void Behave(Behaviour behaviour);
  void Behave(Behaviour::Kind kind) { Behave(Behaviour{.kind = kind}); }

  // The cluster that its status names; kUuid unless said. Before it is asked.
  void BelongTo(std::string uuid) { uuid_ = std::move(uuid); }

  // Closes every connection and refuses new ones; takes them again on the same port.
  void Down();
  void Up();
  // Closes every connection; new ones are taken.
  void CloseConnections();

  // Requests for ids that have come, and ids that were given.
  int64_t requests() const { return requests_; }
  int64_t given() const { return given_; }
  int connections() const { return accepted_; }  // that were ever taken
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
  // False: the connection is to end.
  bool AnswerFrame(int fd, std::string frame);
  bool Say(int fd, const std::string& bytes, const Behaviour& behaviour);
  // False: the server goes down meanwhile.
  bool Wait(Milliseconds time);
  Behaviour behaviour();

  int port_ = 0;
  std::string uuid_ = kUuid;
  const int64_t first_id_;
  std::atomic<int64_t> requests_ = 0, given_ = 0;
  std::atomic<int> accepted_ = 0, open_ = 0;

  std::mutex mutex_;
  std::condition_variable down_;
  bool up_ = false;  // under mutex_, as all below
  Behaviour behaviour_;
  int listener_ = -1;
  std::list<Peer> peers_;
  std::thread thread_;
};

// list://... of some servers.
std::string ListOf(const std::vector<FakeServer*>& servers);

}  // namespace firn
