#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>

#include "client/call/async_call.h"
#include "client/call/connector.h"
#include "client/fleet/fleet.h"
#include "client/fleet/server.h"
#include "client/wire/ask.h"
#include "client/wire/conversation.h"
#include "client/wire/outcome.h"
#include "client/wire/tls_context.h"
#include "common/base/fork.h"

namespace firn::client {

class AsyncCaller;

// One connection to one server, with many calls in flight at a time: the server answers them in the
// order of their coming. It owns the socket and the bytes in both directions, and knows of calls
// only which of them waits for the next answer; what an end means for a call, its AsyncCaller
// decides.
//
//  1. It connects, to whichever address is the first to take it (Connector), agrees upon encryption
//     where the server is spoken to by TLS, then asks for the server's status; calls wait until
//     that shows that the server is of this cluster. All must be done within the time that Open was
//     given.
//  2. Each answer must carry the sequence id of the oldest call in flight.
//  3. When anything goes wrong the connection is closed and every call on it ends. The first to end
//     bears the blame, the others share it. A call that ends sooner than its answer comes, at its
//     deadline for instance, harms nobody: the answer is read like any other, and meets nobody.
//
// Used by one IO thread; kept alive by its own operations until they have ended.
//
// Sharp edge: Close, and any answer, call the caller, which may send on this pipeline, close it, or
// let go of it before the call returns. Whoever goes on after either looks at the phase again.
class Pipeline final : public std::enable_shared_from_this<Pipeline> {
 public:
  using Checked = std::function<void(const Outcome&, const ServerFacts&)>;

  Pipeline(boost::asio::io_context& io, Fleet& fleet, TlsContext& tls, CloseOnFork& fds,
           AsyncCaller& caller, ServerPtr server);
  ~Pipeline();

  // Call once, first: begins to connect, to whichever of the addresses is the first. `checked` is
  // told once, when this has led to a server of the cluster or to nothing; may be null.
  void Open(std::vector<Address> addresses, Micros within, Checked checked);

  // Puts a call at the end; the caller hears of asking `number` once, with OnEnded. It leaves with
  // the next Flush, or as soon as the server was found good. Not after Close.
  void Send(const AsyncCallPtr& call, uint32_t number);
  // Gives the socket what was sent since the last time.
  void Flush();

  // Ends it and every call on it, inside this call. `why` is what became of the oldest one.
  void Close(Outcome why);

  const ServerPtr& server() const { return server_; }
  bool opening() const { return !connected() || phase_ == Phase::kChecking; }
  bool connected() const { return phase_ != Phase::kConnecting && phase_ != Phase::kAgreeing; }
  size_t in_flight() const { return waiting_.size(); }
  // When the last answer came, whoever asked for it.
  Micros heard_at() const { return heard_at_; }
  // What it is to wait here in vain.
  Outcome Silence() const {
    return Outcome::Of(connected() ? AttemptEnd::kTimeout : AttemptEnd::kConnectTimeout,
                       phase_ == Phase::kAgreeing ? "in the TLS handshake" : "");
  }
  // Nobody uses it, and nobody will.
  bool left_over() const { return waiting_.empty() && !server_->listed; }

 private:
  enum class Phase : uint8_t { kConnecting, kAgreeing, kChecking, kOpen, kClosed };
  struct Waiting {
    int32_t sequence;
    AsyncCallPtr call;
    uint32_t number;
    bool pooled;  // the connection was open before the call came
  };
  struct Sealing {
    std::unique_ptr<TlsTalk> talk;
    Address address;   // of the server
    std::string came;  // room for what comes encrypted
  };
  using Executor = boost::asio::io_context::executor_type;
  using Socket = Connector::Socket;
  using Timer = boost::asio::basic_waitable_timer<
      std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;

  void AwaitEndOfOpening(Micros within);
  void OnConnected(Connector::Result result);
  // Begins to agree upon encryption.
  void Agree(const Address& address);
  void AskForStatus();
  void Read();
  void OnRead(const boost::system::error_code& error, size_t n);
  Outcome ClosedBy(const boost::system::error_code& error) const;
  // Takes what came encrypted.
  void TakeSealed(std::string_view bytes);
  // Takes the whole answers off the front of what has come.
  void TakeAnswers();
  void TakeStatus(std::string_view frame);
  void TakeAnswer(std::string_view frame);
  // Sends `bytes`, encrypted where that was agreed upon, and leaves them empty.
  void Write(std::string& bytes);
  void WriteSealed();
  void WriteAsIs(std::string& bytes);
  void EndChecking(const Outcome& outcome, const ServerFacts& facts);

  Fleet& fleet_;
  TlsContext& tls_;
  CloseOnFork& fds_;
  AsyncCaller& caller_;
  const ServerPtr server_;
  Socket socket_;
  const std::shared_ptr<Connector> connector_;
  Timer open_timer_;
  Checked checked_;
  Phase phase_ = Phase::kConnecting;
  std::unique_ptr<Sealing> sealing_;  // null: it is spoken to without encryption
  Conversation talk_;
  int32_t status_sequence_ = 0;
  Micros heard_at_{0};
  std::deque<Waiting> waiting_;  // in the order of sending
  std::string out_;              // not yet given to the socket
  std::string writing_;          // given to the socket, which has not taken all of it
  std::string in_;
  size_t held_ = 0;  // bytes of in_ that have come
  Reply reply_;      // the answer at hand; kept, as it is costly to make
  bool flush_asked_ = false;
};

}  // namespace firn::client
