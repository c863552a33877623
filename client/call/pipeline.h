#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/call/connector.h"
#include "client/call/io_thread.h"
#include "client/call/request.h"
#include "client/fleet/fleet.h"
#include "client/fleet/server.h"
#include "client/wire/ask.h"
#include "client/wire/conversation.h"
#include "client/wire/outcome.h"
#include "client/wire/tls_context.h"
#include "common/base/fork.h"

namespace firn::client {

// Shared by the connections of one IO thread.
struct PipelineHost {
  IoThread& io;
  Fleet& fleet;
  TlsContext& tls;
  CloseOnFork& fds;
  const Micros limit;        // an attempt's time
  const bool counts = true;  // see CallLimits
};

// One connection to one server, with many requests in flight: the server answers them in the order
// of their arrival. It owns the socket and the bytes in both directions. It reports each outcome to
// the fleet, and to the request unless that is settled. It is independent of calls.
//
//  1. It connects to the first address that accepts (Connector), negotiates TLS if the server uses
//     it, then requests the server's status. Requests wait until the status shows that the server
//     belongs to this cluster. All of this must be done within one attempt's time.
//  2. Each answer must have the sequence id of the oldest request in flight.
//  3. If nothing arrives for an attempt's time while requests are in flight, the connection is
//     closed. If only answers to other requests arrive, a request that has waited that long is
//     late: that is reported to the fleet and to the request, and its answer is still accepted. If
//     several are late at the same time, only the first counts as the server's failure.
//  4. Any failure closes the connection and ends every request on it. The first one counts as the
//     server's failure, the others do not (shared_blame). A request that is settled before its
//     answer arrives does no harm: the answer is read like any other, and its ids are lost.
//
// Used by one IO thread; its own operations keep it alive until they have ended.
//
// `checked` may close the pipeline: code that continues after it must check the phase again.
class Pipeline final : public Connection,
                       public IoThread::Output,
                       public std::enable_shared_from_this<Pipeline> {
 public:
  // The owner of a pipeline.
  class Owner {
   public:
    // The pipeline was closed and must no longer be used.
    virtual void OnClosed(Pipeline& pipeline) = 0;

   protected:
    ~Owner() = default;
  };

  using Checked = std::function<void(Pipeline&, const Outcome&, const ServerFacts&)>;

  Pipeline(const PipelineHost& host, Owner& owner, ServerPtr server);
  ~Pipeline();

  // Call once, first. Connects to the first of the addresses that accepts. `checked` is called
  // once, when the server was admitted to the cluster or the connection failed; may be null.
  void Open(std::vector<Address> addresses, Checked checked);

  // Appends a request as its attempt `attempt`. It leaves with the next Flush, or once the server's
  // status is accepted. Must not be called after Close.
  void Send(RequestPtr request, size_t attempt);
  void Flush() override;

  // Closes the connection and ends every request on it. `why` is the outcome of the oldest one.
  void Close(Outcome why);

  const ServerPtr& server() const { return server_; }
  bool opening() const { return !connected() || phase_ == Phase::kChecking; }
  bool connected() const { return phase_ != Phase::kConnecting && phase_ != Phase::kAgreeing; }
  size_t in_flight() const { return waiting_.size(); }
  // Returns whether `ask` and the last request, which leaves at the end of this turn, are both for
  // one id of the same tag.
  bool Gathers(const Ask& ask) const;
  Outcome Silence() const override {
    return Outcome::Of(connected() ? AttemptEnd::kTimeout : AttemptEnd::kConnectTimeout,
                       phase_ == Phase::kAgreeing ? "in the TLS handshake" : "");
  }
  // Whether its server has left the list and no request is in flight.
  bool left_over() const { return waiting_.empty() && !server_->listed; }

 private:
  enum class Phase : uint8_t { kConnecting, kAgreeing, kChecking, kOpen, kClosed };
  struct Waiting {
    int32_t sequence;
    RequestPtr request;
    size_t attempt;
    Micros began;
    bool pooled;        // the connection was open before the request
    bool late = false;  // the fleet got its timeout, and gets no other outcome
  };
  struct Sealing {
    std::unique_ptr<TlsTalk> talk;
    Address address;   // of the server
    std::string came;  // buffer for encrypted input
  };
  using Socket = Connector::Socket;

  // Arms the timer for the first time at which rule 1 or 3 may apply.
  void ArmTimer(Micros within);
  void OnTimer();
  void CheckSilence();
  void ReportLate(Waiting& waiting, bool shared_blame);
  void OnConnected(Connector::Result result);
  // Begins the TLS handshake.
  void Agree(const Address& address);
  void AskForStatus();
  void Read();
  void OnRead(const boost::system::error_code& error, size_t n);
  void TakeBytes(const boost::system::error_code& error, size_t n);
  Outcome ClosedBy(const boost::system::error_code& error) const;
  // Processes encrypted input.
  void TakeSealed(std::string_view bytes);
  // Removes complete answers from the front of the input.
  void TakeAnswers();
  void TakeStatus(std::string_view frame);
  void TakeAnswer(std::string_view frame);
  // Sends `bytes`, encrypted if TLS is used, and clears them.
  void Write(std::string& bytes);
  void WriteSealed();
  void WriteAsIs(std::string& bytes);
  void EndChecking(const Outcome& outcome, const ServerFacts& facts);
  // Reports the outcome to the fleet, and to the request unless that is settled.
  void End(const Waiting& waiting, Outcome outcome);
  // Reports the outcome to the fleet, if it counts or the connection could not be opened.
  void Report(const Waiting& waiting, const Outcome& outcome);

  Micros now() const { return host_.io.now(); }

  const PipelineHost host_;
  Owner& owner_;
  const ServerPtr server_;
  const bool spoke_plainly_;  // as the server's, before this connection
  Socket socket_;
  const std::shared_ptr<Connector> connector_;
  IoThread::Timer timer_;
  bool timer_armed_ = false;
  bool deferred_ = false;  // the timer has fired and waits for sockets to be read
  Checked checked_;
  Phase phase_ = Phase::kConnecting;
  bool opened_ = false;               // it has been in kOpen
  std::unique_ptr<Sealing> sealing_;  // null: no TLS
  Conversation talk_;
  int32_t status_sequence_ = 0;
  Micros heard_at_{0};
  std::deque<Waiting> waiting_;  // in the order of sending
  std::string out_;              // not yet given to the socket
  std::string writing_;          // passed to the socket, which has not taken all of it
  std::string in_;
  size_t held_ = 0;  // bytes of in_ that were received
  Reply reply_;      // for settled requests, and for the status
  bool flush_asked_ = false;
};

using PipelinePtr = std::shared_ptr<Pipeline>;

}  // namespace firn::client
