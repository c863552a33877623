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

// What a connection's first bytes say that it speaks.
enum class DetectedProtocol : uint8_t {
  kUndecided,
  kThriftBinary,
  kThriftCompact,
  kHttp,
  kRedis,
  kDubbo,
  kUnknown
};

// Decides by at most 5 bytes: an upper-case letter begins an HTTP method, and a CR the empty line
// that may stand before one; `*` begins an array of RESP, and 0xDA 0xBB a Dubbo header; a zero byte
// begins the length of a Thrift frame, whose first byte tells binary (0x80) from compact (0x82).
// kUndecided: more bytes are needed. The decision holds for the connection's whole life.
DetectedProtocol Recognise(std::string_view first);

// The protocol under which a recognised speech is counted.
ProtocolKind KindOf(DetectedProtocol speech);

struct DoorCall;
struct ServeStep;

// A request that waits, or whose answer is long, with everything that its answer needs: its bytes
// are not read again. It belongs to the step that parked it, then to the connection, and ends with
// any other answer.
class ParkedRequest {
 public:
  virtual ~ParkedRequest() = default;

  // Tries it again, as Protocol::Serve would, and consumes no input. A step kPark or kMore has the
  // request that replaces this one.
  virtual ServeStep Retry(DoorCall& call, OutBuffer& out) = 0;

  // Bytes of memory that it owns, if they are many.
  virtual size_t memory() const { return 0; }
};

// What became of the request at the front of a connection's input, and of those behind it that were
// served with it.
struct ServeStep {
  enum class Kind : uint8_t {
    kServed,    // `requests` were answered: `bytes` of the input are done with
    kNeedMore,  // it is not whole; `bytes` is its whole length where that is known, or 0
    kPark,      // no ids yet: try `parked` in `again_us`; `bytes` of the input are done with
    kMore,      // not answered completely: the same, in a later turn; nothing is waited for
    kClose,     // the connection is of no more use; what was answered is sent before it ends
  };

  static ServeStep Served(size_t consumed, size_t requests = 1) {
    return {.kind = Kind::kServed, .bytes = consumed, .requests = requests};
  }
  static ServeStep NeedMore(size_t whole = 0) { return {.kind = Kind::kNeedMore, .bytes = whole}; }
  // As NeedMore, of a peer that sends the rest after a 100 Continue, or after a timeout.
  static ServeStep NeedMoreAfterContinue(size_t whole) {
    return {.kind = Kind::kNeedMore, .peer_waits = true, .bytes = whole};
  }
  // `patience_ms`: how long it may wait altogether, if longer than calls for ids. `waits_for`: what
  // FrontDoor::WakeParked names; null: nothing.
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
  size_t bytes = 0;  // consumed; of kNeedMore: the whole request's length, or 0
  int64_t again_us = 0;
  int64_t patience_ms = 0;  // of kPark, as the next two
  bool is_next = false;     // it is another call than before that waits, for a time of its own
  const void* waits_for = nullptr;
  size_t requests = 1;  // of kServed
  std::unique_ptr<ParkedRequest> parked{};
};

// A parked request whose retry is `retry(call, out)`, which returns a ServeStep. `memory`: bytes
// that it owns, if they are many.
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

// What a protocol keeps of a connection between its requests, such as a negotiated version.
class DoorSession {
 public:
  virtual ~DoorSession() = default;

  // Bytes of memory that it owns, if they are many.
  virtual size_t memory() const { return 0; }
};

// What a connection keeps of its calls.
struct DoorCall {
  // The peer's address with its port.
  std::string client{};
  // Created by the connection's protocol when it needs one, used by that protocol only, and
  // destroyed with the connection.
  std::unique_ptr<DoorSession> session{};
  // The names on the certificate that it has shown; none without one.
  std::vector<std::string> names{};
  // The name under which it has logged in, as its protocol knows it; empty: it has not.
  std::string user{};
  // The caller's trace of the present request, for logs and histories; empty: unknown. A parked
  // call refers to it.
  std::string trace_id{};
  // So many requests at the front may be served at once, where that is less work.
  size_t together = 1;
  // The number of the server report that was sent last; 0: none.
  uint64_t report = 0;
  // How long the request may still wait for ids.
  std::chrono::milliseconds patience = std::chrono::hours(24);
  // The request has waited long enough: answer it now; kPark is not permitted.
  bool last = false;
};

// How far the request at the front of the input has been read while it is not whole. Kept so that a
// protocol, which holds nothing of a connection, need not read it from its start again.
struct PartialRead {
  size_t parsed = 0;        // of its bytes, when it was parsed last; 0: it is new
  size_t searched = 0;      // bytes in which its end was looked for
  size_t chunk = 0;         // HTTP: where its next chunk begins; 0: unknown
  bool last_chunk = false;  // HTTP: its last chunk has begun
};

// One protocol's way from bytes to bytes. Holds nothing of a connection between two calls, except
// in DoorCall::session, so one object serves all connections of an IO thread; that thread owns it.
class Protocol {
 public:
  virtual ~Protocol() = default;

  // Serves the request at the front of `in`, which is not empty, and appends its answer to `out`;
  // with it others that follow, if it likes, up to `call.together`. Never blocks, never throws.
  // With kNeedMore, `out` is as it was; with kPark and kMore, a part of the answer may be there.
  virtual ServeStep Serve(std::string_view in, DoorCall& call, OutBuffer& out) = 0;

  // A request whose length is not known was not whole when it was parsed last. False: nor is it
  // now, so `in` need not be parsed from its start again.
  virtual bool MayBeWhole(std::string_view /*in*/, PartialRead& /*read*/) const { return true; }

  // The request at the front of the input is incomplete, and there is no room for more of it:
  // appends the answer to the peer.
  virtual CloseCause TooLong(OutBuffer& /*out*/) { return CloseCause::kFrameTooLarge; }

  // The bytes of a "100 Continue"; sent once for each request that waits for it.
  virtual std::string_view go_on() const { return {}; }
};

// The protocols of one IO thread. Null: the listener does not speak it.
struct ProtocolSet {
  std::unique_ptr<Protocol> thrift_binary{};
  std::unique_ptr<Protocol> thrift_compact{};
  std::unique_ptr<Protocol> http{};
  std::unique_ptr<Protocol> redis{};
  std::unique_ptr<Protocol> dubbo{};

  Protocol* For(DetectedProtocol speech) const;
};

}  // namespace firn::front
