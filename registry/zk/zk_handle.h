#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "common/base/fork.h"
#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/seam/answers.h"
#include "registry/seam/coordinator.h"

struct _zhandle;  // NOLINT(bugprone-reserved-identifier): the vendor's

namespace firn {

// One handle of ZooKeeper's C client, with at most one session; the only file that uses the client
// library. Paths are absolute; results are events.
//
// Threads: created, used and destroyed by one thread. The library calls `sink` on threads of its
// own, so it must only store the event. Tokens and watches are numbers that the caller chooses.
//
// Sharp edge: an answer may be late or may never come (the library has no time limit of its own for
// a server that is silent but alive). The destructor closes the session and waits for the library's
// threads, up to three seconds if the network drops all packets; events may arrive until it
// returns. In a forked child it closes nothing: the session belongs to the parent.
class ZkHandle {
 public:
  struct Options {
    std::string hosts;          // "host:port,host:port"
    Milliseconds session_time;  // requested; the servers may change it
    std::string auth;           // "user:password"; empty: none
    bool shared = false;        // every client may write the persistent nodes that it creates
  };

  using Event = std::variant<SessionEvent, Noticed, Answered>;
  using Sink = std::function<void(Event)>;

  // kUnavailable: a name cannot be resolved now. An invalid text gives the same error: the library
  // does not distinguish it from an unreachable name service.
  static Result<std::unique_ptr<ZkHandle>> Open(const Options& options, Sink sink);
  ~ZkHandle();
  ZkHandle(const ZkHandle&) = delete;
  ZkHandle& operator=(const ZkHandle&) = delete;

  // Each is answered by an Answered with `token`, unless the call fails: then nothing was sent. A
  // `watch` other than 0 is set on the node and reported in a Noticed, once.
  Status Get(const std::string& path, uint64_t token, uint64_t watch);       // Result<Node>
  Status Children(const std::string& path, uint64_t token, uint64_t watch);  // Result<strings>
  Status Exists(const std::string& path, uint64_t token, uint64_t watch);    // Status
  Status Sync(const std::string& path, uint64_t token);                      // Status
  Status Multi(std::vector<Write> writes, uint64_t token);                   // WriteOutcome

  // The session time granted by the servers; before the first connection, the requested one.
  Milliseconds session_time() const;

 private:
  struct Call;
  struct Callbacks;

  ZkHandle(const Options& options, Sink sink);

  Call* NewCall(uint64_t token);
  std::unique_ptr<Call> TakeCall(const void* call);
  Status Sent(int rc, Call* call);

  const Options options_;
  const Sink sink_;
  const ForkSentinel sentinel_;
  _zhandle* zh_ = nullptr;

  // Calls to which the library has a pointer, answered or not.
  std::mutex mutex_;
  std::unordered_map<const void*, std::unique_ptr<Call>> calls_;
};

}  // namespace firn
