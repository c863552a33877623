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

// What the connections of one IO thread share.
struct PipelineHost {
  IoThread& io;
  Fleet& fleet;
  TlsContext& tls;
  CloseOnFork& fds;
  const Micros limit;  // an attempt's time
};

// One connection to one server, with many requests in flight at a time: the server answers them in
// the order of their arrival. It owns the socket and the bytes in both directions, reports each
// outcome to the fleet, and to its request unless that is settled. It knows nothing of calls.
//
//  1. It connects, to whichever address is the first to accept (Connector), negotiates encryption
//     if the server is used with TLS, then asks for the server's status. Requests wait until that
//     shows that the server is of this cluster. All of this must be done within one attempt's time.
//  2. Each answer must carry the sequence id of the oldest request in flight.
//  3. If nothing arrives for an attempt's time while requests are in flight, it is closed. If
//     answers to others arrive, a request that has waited that long is late: it is reported to the
//     fleet and to the request, and its answer is still accepted. Of those that are late at the
//     same time, the first bears the blame, as below.
//  4. When anything fails the connection is closed and every request on it ends. The first to end
//     bears the blame, the others share it. A request that is settled sooner than its answer
//     arrives harms no other: the answer is read like any other, and its ids are lost.
//
// Used by one IO thread; kept alive by its own operations until they have ended.
//
// Sharp edge: `checked` may close the pipeline. Code that continues after it examines the phase
// again.
class Pipeline final : public Connection,
                       public IoThread::Output,
                       public std::enable_shared_from_this<Pipeline> {
 public:
  // The owner of a pipeline.
  class Owner {
   public:
    // It cannot be used any more.
    virtual void OnClosed(Pipeline& pipeline) = 0;

   protected:
    ~Owner() = default;
  };

  using Checked = std::function<void(Pipeline&, const Outcome&, const ServerFacts&)>;

  Pipeline(const PipelineHost& host, Owner& owner, ServerPtr server);
  ~Pipeline();

  // Call once, first: connects to whichever of the addresses is the first to accept. `checked` is
  // called once, when this has led to a server of the cluster or has failed; may be null.
  void Open(std::vector<Address> addresses, Checked checked);

  // Appends a request, as its attempt of this number. It leaves with the next Flush, or as soon as
  // the server's status is good. Not after Close.
  void Send(RequestPtr request, size_t attempt);
  void Flush() override;

  // Ends it and every request on it. `why` is the outcome of the oldest one.
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
  // Its server has left the list, and no request is in flight.
  bool left_over() const { return waiting_.empty() && !server_->listed; }

 private:
  enum class Phase : uint8_t { kConnecting, kAgreeing, kChecking, kOpen, kClosed };
  struct Waiting {
    int32_t sequence;
    RequestPtr request;
    size_t attempt;
    Micros began;
    bool pooled;        // the connection was open before
    bool late = false;  // its time-out was reported; no other outcome is
  };
  struct Sealing {
    std::unique_ptr<TlsTalk> talk;
    Address address;   // of the server
    std::string came;  // room for what comes encrypted
  };
  using Socket = Connector::Socket;

  // Arms the timer, for the first moment at which rule 1 or 3 may apply.
  void ArmTimer(Micros within);
  void OnTimer();
  void CheckSilence();
  void ReportLate(Waiting& waiting, bool shared_blame);
  void OnConnected(Connector::Result result);
  // Begins to agree upon encryption.
  void Agree(const Address& address);
  void AskForStatus();
  void Read();
  void OnRead(const boost::system::error_code& error, size_t n);
  void TakeBytes(const boost::system::error_code& error, size_t n);
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
  // Reports the outcome to the fleet, and to the request unless that is settled.
  void End(const Waiting& waiting, Outcome outcome);

  Micros now() const { return host_.io.now(); }

  const PipelineHost host_;
  Owner& owner_;
  const ServerPtr server_;
  Socket socket_;
  const std::shared_ptr<Connector> connector_;
  IoThread::Timer timer_;
  bool timer_armed_ = false;
  bool deferred_ = false;  // the timer has fired and waits for sockets to be read
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
  Reply reply_;      // of settled requests, and of status
  bool flush_asked_ = false;
};

using PipelinePtr = std::shared_ptr<Pipeline>;

}  // namespace firn::client
