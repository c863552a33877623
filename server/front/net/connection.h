#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/time/clock.h"
#include "server/front/net/buffers.h"
#include "server/front/net/limits.h"
#include "server/front/net/places.h"
#include "server/front/net/protocol.h"
#include "server/front/net/wire.h"

namespace firn::front {

class Connection;

// State that an IO thread shares with its connections. Any thread may read the counters.
struct IoShare {
  const Limits& limits;
  const Clock& clock;
  const ProtocolSet protocols;
  LoopCounters counters{};
  // Buffer into which one call writes its answers. Empty between calls.
  OutBuffer output = OutBuffer();
  // The boot clock, read a few times a second.
  int64_t coarse_ms = clock.Boot().ms();
  // Takes a log line about a peer that uses no supported protocol. Empty: such lines are dropped.
  std::function<void(const std::string&)> log{};
  int64_t log_again_ms = 0;  // earliest time of the next log line

  // The boot clock now, for requests that wait and for measurements.
  int64_t exact_ms() const { return clock.Boot().ms(); }
  int64_t exact_us() const { return clock.BootMicros().count(); }
};

// Services that an IO thread offers to its connections.
class ConnectionHost {
 public:
  // Calls its ReadMore() after the other connections of this turn have been served: by then the
  // next request has often arrived, which saves a useless system call.
  virtual void ReadLater(Connection& connection) = 0;
  // Calls its Resume() at the end of the turn.
  virtual void ResumeLater(Connection& connection) = 0;
  // Calls its Resume() when there may be ids: after about `again_us`, at most a few milliseconds.
  virtual void Park(Connection& connection, int64_t again_us) = 0;
  // Destroys the connection and cancels the calls above.
  virtual void Remove(Connection& connection) = 0;

 protected:
  ~ConnectionHost() = default;
};

// A connection of one peer: reads its input, serves every complete request in it, and sends all
// answers in one write, in the order of the requests. Used by its IO thread only.
//
//  1. Input is served whenever it grows, when a parked request has been answered, and when waiting
//     output has been sent.
//  2. Serving stops when no complete request is left, a request is parked, the turn's limit is
//     reached, or too much output is unsent. Only in the first case is more input read.
//  3. So at most one request of a connection is parked. Later ones wait unread or in the input
//     buffer, and no answer overtakes another.
//  4. After a step that closes, the answers are sent and the sending side is shut down. Then input
//     is discarded until the peer closes, so that the peer can read the reason.
//  5. An incomplete request is parsed again when it has its full length, or, if that is unknown,
//     when its protocol reports that it may be complete.
//  6. It is removed once it is closed and no read or write is in progress.
//  7. In a place that is reserved for servers (Places), it is closed after its first turn, unless
//     that contained a server's request.
class Connection final {
 public:
  // `peer` is the address of the other end, as histories show it.
  Connection(ConnectionHost& host, IoShare& io, std::unique_ptr<Wire> wire, std::string peer = {});
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // --- called by its wire ------------------------------------------------------------------------

  // `n` > 0 bytes were read. `input` is the buffer of the read, with these bytes at its end.
  void OnRead(size_t n, InBuffer&& input);
  // The read ended without bytes. `peer_closed`: in an orderly way; otherwise the connection broke
  // or was closed by this side.
  void OnReadFailed(bool peer_closed);
  // `n` > 0 more bytes of the write were sent. It ends when all of them have been.
  void OnWritten(size_t n);
  // The write failed; the rest of its bytes is lost.
  void OnWriteFailed();
  // The peer has presented a certificate with these names. Called before the first OnRead.
  void OnIdentified(std::vector<std::string> names) { call_.names = std::move(names); }
  // The TLS handshake failed. Called instead of the first OnRead.
  void OnHandshakeFailed() {
    reading_ = false;
    Close(CloseCause::kTls);
  }

  // --- called by its host ------------------------------------------------------------------------

  // Starts reading. Like all functions below, it may end in Remove.
  void Start() { ReadMore(); }

  void ReadMore();
  void Resume();

  // Closes the connection if one of its deadlines has passed. Called several times a second.
  void CheckDeadlines();

  // Closes it now, with all operations in progress.
  void Close(CloseCause cause);
  // Like Close, for a connection with an incomplete request, or none.
  void CloseUnserved();
  // Closes it as soon as all its answers have been sent.
  void CloseWhenIdle();

  // Whether a request has shown that the peer is another server of the cluster.
  bool of_server() const { return call_.of_server; }
  // Whether it has a call that waits for this.
  bool WaitsFor(const void* what) const { return parked_ && parked_->waits_for == what; }
  // Since when its request or TLS handshake has been incomplete.
  std::optional<int64_t> half_since_ms() const;
  // Like half_since_ms(), or the time of accepting if it has sent nothing since.
  std::optional<int64_t> unserved_since_ms() const;
  // Bytes of memory of its buffers in both directions, used or not.
  size_t memory() const;
  // Frees the memory of its empty buffers, unless output is unsent.
  void Relax();
  // The time of its last progress: the peer read enough, or sent a request.
  int64_t still_since_ms() const {
    return unread_since_ms_.value_or(half_since_ms().value_or(quiet_since_ms_));
  }
  // The order in which connections of a peer are closed for others: the highest rank first.
  enum Rank : uint8_t { kGone, kOwed, kIdle, kUnserved };
  Rank rank() const {
    if (phase_ == Phase::kClosed) return kGone;
    if (unserved_since_ms()) return kUnserved;
    return parked_ || unsent() != 0 ? kOwed : kIdle;
  }
  // Returns whether it has been answered and closes, but still has the place of a server.
  bool keeps_place_of_server() const { return phase_ != Phase::kOpen && IsInPlaceOfServer(); }
  // Closes it because its buffers use too much memory.
  void CloseForMemory() {
    if (unsent() == 0 && half_since_ms()) return CloseUnserved();
    Close(CloseCause::kUnread);
  }

  // The host's own data: the lists that contain the connection, and its place.
  struct Listed {
    size_t index = 0;
    bool to_read = false, to_resume = false, parked = false;
    int64_t again_at_us = 0;  // while it is parked
    Places::Place place{};
    uint64_t peer = 0;
    std::optional<size_t> closable{};  // index in the list of those to close for others
  } listed;

 private:
  // Calls `verb`, and closes the connection if there is no memory.
  template <typename Verb>
  void Guarded(Verb verb);
  void Read();
  void Written(size_t n);

  //   phase       ends when                                           next phase
  //   kOpen       a step closes, the peer has closed, or all answers  kFinishing
  //               have been sent after CloseWhenIdle
  //   kFinishing  all answers have been sent                          kLingering
  //   kLingering  the peer has closed, or after 1 s                   kClosed
  //   kClosed     no read and no write is in progress                 removed
  //
  // From every phase, a failure, a timeout or Close leads to kClosed.
  enum class Phase : uint8_t {
    kOpen,
    kFinishing,  // sends waiting answers, then shuts down its sending side
    kLingering,  // the sending side is shut down; discards input
    kClosed      // waits until the wire has answered
  };

  // The request at the front of the input, while it is incomplete.
  struct Front {
    size_t whole = 0;  // its length, if known
    PartialRead read{};
    bool may_be_whole = false;  // its protocol said so, and it has not been parsed since
    size_t parsed_in_vain = 0;  // total bytes that were parsed while it was incomplete
    bool told_to_go_on = false;
    std::optional<int64_t> since_ms{};  // the time of its first byte
  };
  // A request that waits, or that is answered in several turns.
  struct Parked {
    int64_t since_us;
    std::optional<int64_t> until_ms{};  // its deadline, once it has waited
    bool waits = false;                 // false: it is only answered in several turns
    const void* waits_for = nullptr;
    std::unique_ptr<ParkedRequest> request{};
  };

  struct Turn {
    ServeStep last;  // the step that ended it; kServed: the turn's limit
    size_t served = 0;
  };

  // Serves what can be served, sends the answers, and arranges the next step.
  void Pump();
  Turn ServeAll(OutBuffer& out, int64_t begin_us);
  ServeStep ServeOne(OutBuffer& out);
  ServeStep RetryParked(OutBuffer& out);
  // Rule 7. A server gets a reserved place. A client leaves it after an answer, which may take
  // several turns.
  bool MustLeave(const Turn& turn) {
    if (call_.of_server) listed.place.Reserve();
    return turn.served != 0 && turn.last.parked == nullptr && IsInPlaceOfServer();
  }
  bool IsInPlaceOfServer() const { return listed.place.reserved() && !call_.of_server; }
  // Finds the protocol by the first bytes. Nullopt: it is supported.
  std::optional<ServeStep> Recognised(OutBuffer& out);
  ServeStep NotWhole(ServeStep step);
  void Park(ServeStep step);
  void Continue(ServeStep step);
  void ServeLater();
  ServeStep TurnAway(OutBuffer& out);
  void SendContinue(OutBuffer& out);
  void Send(OutBuffer& out);
  void WriteWaiting();
  void BeginToWait();
  void GoOn(ServeStep last);
  void Finish(CloseCause cause);
  // Closes it now, with the cause of Finish if that was called, or else with `cause`.
  void Break(CloseCause cause) { Close(finished_for_.value_or(cause)); }
  void Linger();
  // Must be called last: it may destroy this.
  void RemoveIfDone();
  // During a read the wire has all the input, and no request in it is complete.
  bool MayServe() const { return phase_ == Phase::kOpen && !reading_; }
  bool HasHalfRequest() const { return !in_.empty() || front_.since_ms; }
  size_t unsent() const { return with_wire_ + waiting_.size(); }
  bool OutputPaused() const { return unsent() > io_.limits.output_waiting_bytes_max; }

  ConnectionHost& host_;
  IoShare& io_;
  const std::unique_ptr<Wire> wire_;
  Protocol* protocol_ = nullptr;  // once recognised
  ProtocolKind kind_{};           // of protocol_
  InBuffer in_;                   // empty during a read: the wire has it
  OutBuffer waiting_;             // answers that wait for the wire
  size_t with_wire_ = 0;          // bytes of answers that the wire has; 0: no write is in progress
  bool reading_ = false;
  bool close_when_idle_ = false;
  Phase phase_ = Phase::kOpen;
  std::optional<CloseCause> finished_for_;  // set by Finish
  Front front_;
  DoorCall call_;                           // of the request at the front
  std::optional<Parked> parked_;            // refers to call_
  int64_t quiet_since_ms_;                  // when it last served a request, or shut its side down
  std::optional<int64_t> unread_since_ms_;  // when the peer last read enough of the unsent output
  size_t moved_since_ = 0;                  // bytes that it has read since then
};

}  // namespace firn::front
