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

// What an IO thread and its connections work with. The counters are read by any thread.
struct IoShare {
  const Limits& limits;
  const Clock& clock;
  const ProtocolSet protocols;
  LoopCounters counters{};
  // Lent for the time of one call: where answers are written. Empty between calls.
  OutBuffer output = OutBuffer();
  // A boot clock that is read a few times a second.
  int64_t coarse_ms = clock.Boot().ms();
  // Takes a log line about a peer that uses no supported protocol. Empty: such lines are dropped.
  std::function<void(const std::string&)> log{};
  int64_t log_again_ms = 0;  // not before

  // The boot clock now, for the few who must wait, and for measuring.
  int64_t exact_ms() const { return clock.Boot().ms(); }
  int64_t exact_us() const { return clock.BootMicros().count(); }
};

// What a connection asks of the IO thread that it lives on.
class ConnectionHost {
 public:
  // Calls ReadMore() of it when this turn's other connections have been served: by then the next
  // request has often arrived, which saves a fruitless system call.
  virtual void ReadLater(Connection& connection) = 0;
  // Calls Resume() of it at the end of the turn.
  virtual void ResumeLater(Connection& connection) = 0;
  // Calls Resume() of it when there may be ids: after about `again_us`, a few milliseconds at most.
  virtual void Park(Connection& connection, int64_t again_us) = 0;
  // Destroys it, and forgets all of the above.
  virtual void Remove(Connection& connection) = 0;

 protected:
  ~ConnectionHost() = default;
};

// One peer: reads whatever has arrived, serves every whole request in it, and writes all answers
// in one go, in the order of the requests. Used by its IO thread only.
//
//  1. Input is served whenever it grows, when a parked request has been answered, and when waiting
//     output has gone.
//  2. Serving stops at: the end of the whole requests; a request that is parked; the turn's limit;
//     too much unsent output. Only in the first case is more input read.
//  3. So at most one request of a connection is parked, those behind it wait unread or in the
//     input buffer, and no answer overtakes another.
//  4. After a step that closes: what was answered is sent, then the sending side is shut, then
//     input is thrown away until the peer closes, so that it gets to read why.
//  5. A request that is not whole is parsed again when it is as long as it has to be, where that
//     is known, or else when its protocol says that it may be whole.
//  6. It is removed once it is closed and no read or write is under way.
class Connection final {
 public:
  // `peer` is who is at the other end, as histories show it.
  Connection(ConnectionHost& host, IoShare& io, std::unique_ptr<Wire> wire, std::string peer = {});
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // --- from its wire ----------------------------------------------------------------------------

  // `n` > 0 bytes were read. `input` is what was handed over, and those bytes behind it.
  void OnRead(size_t n, InBuffer&& input);
  // The read ended without bytes. `peer_closed`: in an orderly way; otherwise the connection broke
  // or was closed from here.
  void OnReadFailed(bool peer_closed);
  // `n` > 0 more bytes of the write have gone. It ends when all of them have.
  void OnWritten(size_t n);
  // The write has ended, and what is left of it is lost.
  void OnWriteFailed();
  // The peer has shown a certificate for these names. Before the first answer to a read.
  void OnIdentified(std::vector<std::string> names) { call_.names = std::move(names); }
  // The encryption could not be agreed upon. Instead of an answer to the first read.
  void OnHandshakeFailed();

  // --- from its host ----------------------------------------------------------------------------

  // Begins to read. May end in Remove, as all that follow.
  void Start() { ReadMore(); }

  // As it was asked.
  void ReadMore();
  void Resume();

  // Ends the connection if it has overstayed. Several times a second.
  void CheckDeadlines();

  // Ends it now, with whatever is under way.
  void Close(CloseCause cause);
  // The same, of one that has sent half a request, or nothing.
  void CloseUnserved();
  // Ends it as soon as nothing is owed to the peer.
  void CloseWhenIdle();

  // Whether it has a call that waits for this.
  bool WaitsFor(const void* what) const { return parked_ && parked_->waits_for == what; }
  // Since when its first request has not been whole, or its encryption not agreed upon.
  std::optional<int64_t> half_since_ms() const;
  // The same, or the time at which it was accepted, if it has sent nothing since.
  std::optional<int64_t> unserved_since_ms() const;
  // Bytes of memory of its buffers, in both directions, whether they are used or not.
  size_t memory() const;
  // Frees the memory of its buffers that hold nothing, unless it is being served.
  void Relax();
  // Since when nothing has moved: enough of its answers, or a request.
  int64_t still_since_ms() const {
    return unread_since_ms_.value_or(half_since_ms().value_or(quiet_since_ms_));
  }
  // Which connections of a peer make room for others: those of higher rank before the others.
  enum Rank : uint8_t { kGone, kOwed, kIdle, kUnserved };
  Rank rank() const {
    if (phase_ == Phase::kClosed) return kGone;
    if (unserved_since_ms()) return kUnserved;
    return parked_ || unsent() != 0 ? kOwed : kIdle;
  }
  // Ends it for the memory of its buffers.
  void CloseForMemory() {
    if (unsent() == 0 && half_since_ms()) return CloseUnserved();
    Close(CloseCause::kUnread);
  }

  // Which of the host's lists it stands on, where in that of all, and its place at the door; the
  // host's own.
  struct Listed {
    size_t index = 0;
    bool to_read = false, to_resume = false, parked = false;
    int64_t again_at_us = 0;  // while it is parked
    Places::Place place{};
    uint64_t peer = 0;
    std::optional<size_t> closable{};  // where on the list of those that may be closed for others
  } listed;

 private:
  // Does one of the verbs above. A connection for which there is no memory is closed.
  template <typename Verb>
  void Guarded(Verb verb);
  void Read();
  void Written(size_t n);

  //   phase       is over                                            goes on as
  //   kOpen       with a step that closes, the peer's end, or when   kFinishing
  //               nothing is owed to the peer on the way out
  //   kFinishing  when all answers have gone                         kLingering
  //   kLingering  when the peer has closed, or after a second        kClosed
  //   kClosed     when no read and no write is under way             removed
  //
  // Whatever breaks, is late, or ends by the host's word is kClosed from any of them.
  enum class Phase : uint8_t {
    kOpen,
    kFinishing,  // sends what waits, then shuts its side
    kLingering,  // has shut its side; throws input away
    kClosed      // waits for the wire's last answers
  };

  // The request at the front of the input, while it is not whole.
  struct Front {
    size_t whole = 0;  // its length, where known
    PartialRead read{};
    bool may_be_whole = false;  // as its protocol found, and no parsing has failed since
    size_t parsed_in_vain = 0;  // bytes of it, of all such attempts together
    bool told_to_go_on = false;
    std::optional<int64_t> since_ms{};  // when it began
  };
  // A request that waits, or that is answered in several turns.
  struct Parked {
    int64_t since_us;
    std::optional<int64_t> until_ms{};  // once it has waited
    bool waits = false;                 // it is not just answered in several turns
    const void* waits_for = nullptr;
    std::unique_ptr<ParkedRequest> request{};
  };

  // What a turn came to.
  struct Turn {
    ServeStep last;  // the step that ended it; kServed: the turn's limit
    size_t served = 0;
  };

  // Serves what can be served, sends the answers, and arranges the next step.
  void Pump();
  Turn ServeAll(OutBuffer& out, int64_t begin_us);
  ServeStep ServeOne(OutBuffer& out);
  ServeStep RetryParked(OutBuffer& out);
  // Finds the protocol of the first bytes. Nullopt: it is found.
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
  // Ends it now: for what it was finished, or for `cause` where it was not.
  void Break(CloseCause cause) { Close(finished_for_.value_or(cause)); }
  void Linger();
  // The last thing to be called: it may destroy this.
  void RemoveIfDone();
  // While a read is under way, all the input is with the wire, and no request in it is whole.
  bool MayServe() const { return phase_ == Phase::kOpen && !reading_; }
  bool HasHalfRequest() const { return !in_.empty() || front_.since_ms; }
  size_t unsent() const { return with_wire_ + waiting_.size(); }
  bool OutputPaused() const { return unsent() > io_.limits.output_waiting_bytes_max; }

  ConnectionHost& host_;
  IoShare& io_;
  const std::unique_ptr<Wire> wire_;
  Protocol* protocol_ = nullptr;  // once recognised
  ProtocolKind kind_{};           // of that
  InBuffer in_;                   // empty while a read is under way: the wire has it
  OutBuffer waiting_;             // answers behind those that the wire has
  size_t with_wire_ = 0;          // bytes of answers that the wire has; 0: no write is under way
  bool reading_ = false;
  bool close_when_idle_ = false;
  Phase phase_ = Phase::kOpen;
  std::optional<CloseCause> finished_for_;  // once it is not open any more, unless it broke
  Front front_;
  DoorCall call_;                           // of the request at the front
  std::optional<Parked> parked_;            // refers to call_
  int64_t quiet_since_ms_;                  // when the last request was served, or it was shut
  std::optional<int64_t> unread_since_ms_;  // when enough output last moved while some waited
  size_t moved_since_ = 0;                  // bytes of it since then
};

}  // namespace firn::front
