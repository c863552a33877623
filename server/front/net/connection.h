#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/front/net/buffers.h"
#include "server/front/net/limits.h"
#include "server/front/net/protocol.h"
#include "server/front/net/wire.h"

namespace firn::front {

class Connection;

// What a connection needs of the IO thread that it lives on.
class ConnectionHost {
 public:
  // Calls ReadMore() of it when this turn's other connections have been served: by then the next
  // request has often arrived, and asking the kernel in vain is saved.
  virtual void ReadLater(Connection& connection) = 0;
  // Calls Resume() of it at the end of the turn.
  virtual void ResumeLater(Connection& connection) = 0;
  // Calls Resume() of it when there may be ids: after about `again_us`, a few milliseconds at most.
  virtual void Park(Connection& connection, int64_t again_us) = 0;
  // Destroys it, and forgets all of the above.
  virtual void Remove(Connection& connection) = 0;

  // A boot clock that is read a few times a second.
  virtual int64_t coarse_ms() const = 0;
  // A boot clock that is read now, for the few who must wait, and for measuring.
  virtual int64_t exact_ms() const = 0;
  virtual int64_t exact_us() const = 0;

  // Lent for the time of one call: where answers are written. Empty between calls.
  virtual OutBuffer& output() = 0;
  virtual LoopCounters& counters() = 0;

 protected:
  ~ConnectionHost() = default;
};

// One peer: reads whatever has arrived, serves every whole request in it, and writes all answers
// in one go, in the order of the requests. Used by its IO thread only.
//
//  1. Input is served whenever it grows, when a parked request is tried again, and when waiting
//     output has gone.
//  2. Serving stops at: the end of the whole requests; a request that is parked; the turn's limit;
//     too much unsent output. Only in the first case is more input read.
//  3. So at most one request of a connection is parked, those behind it wait unread or in the
//     input buffer, and no answer overtakes another.
//  4. After a step that closes: what was answered is sent, then the sending side is shut, then
//     input is thrown away until the peer closes, so that it gets to read why.
//  5. A request that is not whole is looked at again when it is as long as it has to be, where that
//     is known, or else when its protocol sees a chance; a peer that makes it look in vain all the
//     time is closed.
//  6. It is removed once it is closed and no read or write is under way.
class Connection final : private WireUser {
 public:
  // `peer` is who is at the other end, as histories show it.
  Connection(ConnectionHost& host, const Limits& limits, const ProtocolSet& protocols,
             std::unique_ptr<Wire> wire, std::string peer = {});
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Begins to read. May end in Remove, as all that follow.
  void Start();

  // From the host, as it was asked.
  void ReadMore();
  void Resume();

  // Ends the connection if it has overstayed. Several times a second.
  void CheckDeadlines();

  // Ends it now, with whatever is under way.
  void Close(CloseCause cause);
  // Ends it as soon as nothing is owed to the peer.
  void CloseWhenIdle();

  // Which of the host's lists it stands on, and where in that of all; the host's own.
  struct Listed {
    size_t index = 0;
    bool to_read = false, to_resume = false, parked = false;
  } listed;

 private:
  enum class Phase : uint8_t {
    kOpen,
    kFinishing,  // sends what waits, then shuts its side
    kLingering,  // has shut its side; throws input away
    kClosed      // waits for the wire's last answers
  };

  void OnRead(size_t n, InBuffer&& input) override;
  void OnReadFailed(bool peer_closed) override;
  void OnWritten(size_t n) override;
  void OnWriteFailed() override;
  void OnHandshakeFailed() override;

  // Serves what can be served, sends the answers, and arranges how it goes on.
  void Pump();
  // Serves whole requests, and counts them; returns the step that ended it (kServed: the turn's
  // limit).
  ServeStep ServeAll(OutBuffer& out, size_t* served);
  ServeStep ServeOne(OutBuffer& out);
  ServeStep NotWhole(ServeStep step);
  void TellToGoOn(OutBuffer& out);
  size_t RequestBytesMax() const;
  void Send(OutBuffer& out);
  void CountLatency(int64_t since_us, size_t served);
  void WriteWaiting();
  void GoOn(ServeStep last);
  void Finish(CloseCause cause);
  void Linger();
  // The last thing to be called: it may destroy this.
  void RemoveIfDone();
  // While a read is under way, all the input is with the wire, and no request in it is whole.
  bool MayServe() const { return phase_ == Phase::kOpen && !reading_; }
  bool HasHalfRequest() const { return !in_.empty() || half_since_ms_ != 0; }
  size_t unsent() const { return with_wire_ + waiting_.size(); }
  bool OutputPaused() const { return unsent() > limits_.output_waiting_bytes_max; }

  ConnectionHost& host_;
  const Limits& limits_;
  const ProtocolSet& protocols_;
  const std::unique_ptr<Wire> wire_;
  Protocol* protocol_ = nullptr;  // once recognised
  InBuffer in_;                   // empty while a read is under way: the wire has it
  OutBuffer waiting_;             // answers behind those that the wire has
  size_t with_wire_ = 0;          // bytes of answers that the wire has; 0: no write is under way
  size_t whole_ = 0;              // the length of the request at the front, where known
  size_t looked_at_ = 0;          // of that request, when it was not whole last; 0: it is new
  size_t looked_in_vain_ = 0;     // bytes of that request, all such looks together
  Phase phase_ = Phase::kOpen;
  CloseCause cause_ = CloseCause::kPeer;
  bool reading_ = false;
  bool close_when_idle_ = false;
  bool told_to_go_on_ = false;   // the peer of the request at the front
  int64_t served_ms_ = 0;        // when the last request was served
  int64_t half_since_ms_ = 0;    // when the request at the front began; 0: none has
  int64_t unread_since_ms_ = 0;  // when output last moved while some waited; 0: none waits
  int64_t park_until_ms_ = 0;    // 0: nothing is parked
  int64_t parked_since_us_ = 0;
  DoorCall call_;  // of the request at the front
};

}  // namespace firn::front
