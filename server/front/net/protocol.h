#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/front/net/buffers.h"
#include "server/front/net/counters.h"

namespace firn::front {

// The protocol that a connection's first bytes indicate.
enum class DetectedProtocol : uint8_t {
  kUndecided,
  kThriftBinary,
  kThriftCompact,
  kHttp,
  kRedis,
  kDubbo,
  kUnknown
};

// Decides by at most 5 bytes. An upper-case letter begins an HTTP method, and a CR an empty line
// before it. `*` begins an array of RESP, and 0xDA 0xBB a Dubbo header. A zero byte begins the
// length of a Thrift frame, whose first byte is 0x80 (binary) or 0x82 (compact). kUndecided: more
// bytes are needed. The decision is final for the connection.
DetectedProtocol Recognise(std::string_view first);

// The protocol whose counters count it.
ProtocolKind KindOf(DetectedProtocol speech);

struct DoorCall;
struct ServeStep;

// A request that waits, or whose answer is long, with everything that its answer needs: its bytes
// are not read again. It belongs to the step that parked it, then to the connection, and is
// destroyed once it is answered.
class ParkedRequest {
 public:
  virtual ~ParkedRequest() = default;

  // Tries again, as Protocol::Serve would, and consumes no input. A step kPark or kMore contains
  // the request that replaces this one.
  virtual ServeStep Retry(DoorCall& call, OutBuffer& out) = 0;

  // Bytes of memory that it owns; small amounts may be left out.
  virtual size_t memory() const { return 0; }
};

// The result of serving the request at the front of a connection's input, and perhaps some of those
// behind it.
struct ServeStep {
  enum class Kind : uint8_t {
    kServed,    // `requests` were answered; `bytes` of input are consumed
    kNeedMore,  // the request is incomplete; `bytes` is its length if that is known, or 0
    kPark,      // no ids yet: retry `parked` in `again_us`; `bytes` of input are consumed
    kMore,      // the answer is incomplete: like kPark, but continue in the next turn
    kClose,     // the connection ends, after the answers have been sent
  };

  static ServeStep Served(size_t consumed, size_t requests = 1) {
    return {.kind = Kind::kServed, .bytes = consumed, .requests = requests};
  }
  static ServeStep NeedMore(size_t whole = 0) { return {.kind = Kind::kNeedMore, .bytes = whole}; }
  // Like NeedMore, for a peer that waits for a 100 Continue, or a timeout, to send the rest.
  static ServeStep NeedMoreAfterContinue(size_t whole) {
    return {.kind = Kind::kNeedMore, .peer_waits = true, .bytes = whole};
  }
  // `patience_ms`: maximum time to wait, if longer than issue_wait_ms. `waits_for`: the object that
  // FrontDoor::WakeParked names; null: none.
  static ServeStep Park(std::chrono::microseconds again, std::unique_ptr<ParkedRequest> request,
                        int64_t patience_ms = 0, const void* waits_for = nullptr) {
    return {.kind = Kind::kPark,
            .again_us = again.count(),
            .patience_ms = patience_ms,
            .waits_for = waits_for,
            .parked = std::move(request)};
  }
  static ServeStep More(std::unique_ptr<ParkedRequest> request) {
    return {.kind = Kind::kMore, .parked = std::move(request)};
  }
  static ServeStep Close(CloseCause cause) { return {.kind = Kind::kClose, .cause = cause}; }

  Kind kind;
  CloseCause cause = CloseCause::kPeer;
  bool peer_waits = false;
  size_t bytes = 0;  // consumed; with kNeedMore: length of the request, or 0
  int64_t again_us = 0;
  int64_t patience_ms = 0;  // of kPark, like the next two
  bool is_next = false;     // the request now waits for another call: its time starts again
  const void* waits_for = nullptr;
  size_t requests = 1;  // of kServed
  std::unique_ptr<ParkedRequest> parked{};
};

// A parked request whose Retry is `retry(call, out)`. `memory`: bytes that it owns, if they are
// many.
template <typename F>
std::unique_ptr<ParkedRequest> ParkedAs(F retry, size_t memory = 0) {
  struct Parked final : ParkedRequest {
    Parked(F&& how, size_t bytes) : try_again(std::move(how)), owned(bytes) {}
    ServeStep Retry(DoorCall& call, OutBuffer& out) override { return try_again(call, out); }
    size_t memory() const override { return owned; }
    F try_again;
    size_t owned;
  };
  return std::make_unique<Parked>(std::move(retry), memory);
}

// The state that a protocol keeps for a connection between requests, such as a negotiated version.
class DoorSession {
 public:
  virtual ~DoorSession() = default;

  // Bytes of memory that it owns; small amounts may be left out.
  virtual size_t memory() const { return 0; }
};

// The state that a connection keeps for its calls.
struct DoorCall {
  // The peer's address with its port.
  std::string client{};
  // Created by the connection's protocol when it needs one, used by that protocol only, and
  // destroyed with the connection.
  std::unique_ptr<DoorSession> session{};
  // The names on the client's certificate; none without one.
  std::vector<std::string> names{};
  // The name of the login, as the protocol knows it; empty: not logged in.
  std::string user{};
  // The caller's trace id of the current request, for logs and histories; empty: unknown. A parked
  // call refers to it.
  std::string trace_id{};
  // How many requests at the front may be served in one call, if the protocol supports that.
  size_t together = 1;
  // The number of the last status report that was sent; 0: none.
  uint64_t report = 0;
  // How long the request may still wait for ids.
  std::chrono::milliseconds patience = std::chrono::hours(24);
  // The request's time is over: answer it now; kPark is not permitted.
  bool last = false;
  // The connection is in another server's place and must close soon: no request waits.
  bool hurries = false;
  // A request has shown that the peer is another server of the cluster.
  bool of_server = false;
};

// How far the incomplete request at the front of the input has been read. Stored here because a
// protocol keeps no state of a connection, so it need not parse the request from the start again.
struct PartialRead {
  size_t parsed = 0;        // bytes of it that there were when it was parsed last; 0: it is new
  size_t searched = 0;      // bytes in which its end was searched
  size_t chunk = 0;         // HTTP: where its next chunk begins; 0: unknown
  bool last_chunk = false;  // HTTP: its last chunk has begun
};

// One protocol: turns request bytes into answer bytes. Keeps no state of a connection, except in
// DoorCall::session, so one object serves all connections of an IO thread, which owns it.
class Protocol {
 public:
  virtual ~Protocol() = default;

  // Serves the request at the front of `in`, which is not empty, and appends its answer to `out`.
  // It may also serve later requests, up to `call.together` in total. Never blocks, never throws.
  // With kNeedMore, `out` is unchanged; with kPark and kMore, it may contain a part of the answer.
  virtual ServeStep Serve(std::string_view in, DoorCall& call, OutBuffer& out) = 0;

  // Called for a request of unknown length that was incomplete when it was parsed last. False: it
  // is still incomplete, so it need not be parsed from its start again.
  virtual bool MayBeWhole(std::string_view /*in*/, PartialRead& /*read*/) const { return true; }

  // The request at the front of the input is incomplete and exceeds the maximum size: appends an
  // answer that says so.
  virtual CloseCause TooLong(OutBuffer& /*out*/) { return CloseCause::kFrameTooLarge; }

  // The bytes of a "100 Continue"; sent once for each request that waits for it.
  virtual std::string_view go_on() const { return {}; }
};

// The protocols of one IO thread. Null: the listener does not serve it.
struct ProtocolSet {
  std::unique_ptr<Protocol> thrift_binary{};
  std::unique_ptr<Protocol> thrift_compact{};
  std::unique_ptr<Protocol> http{};
  std::unique_ptr<Protocol> redis{};
  std::unique_ptr<Protocol> dubbo{};

  Protocol* For(DetectedProtocol speech) const;
};

}  // namespace firn::front
