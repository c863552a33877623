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

// One handle of ZooKeeper's C client, which is one session at most; the only file that knows the
// client library. Speaks of absolute paths, and in events.
//
// Threads: made, used and destroyed by one thread. The library calls `sink` on threads of its own,
// so it may only put the event away; what it does with tokens and watches is the caller's affair.
//
// Sharp edge: an answer may never come, nor in time (the library has no time limit of its own for
// a server that is silent but alive). The destructor closes the session, waits for the library's
// threads, up to three seconds when the network swallows everything, and events may come until it
// returns. In a forked child it closes nothing: the session is the parent's.
class ZkHandle {
 public:
  struct Options {
    std::string hosts;          // "host:port,host:port"
    Milliseconds session_time;  // as asked for; the servers may change it
    std::string auth;           // "user:password"; empty: none
  };

  using Event = std::variant<SessionEvent, Noticed, Answered>;
  using Sink = std::function<void(Event)>;

  // kUnavailable: a name cannot be resolved now. A text that is wrong is told apart by nobody here:
  // the library says the same of a name service that is away.
  static Result<std::unique_ptr<ZkHandle>> Open(const Options& options, Sink sink);
  ~ZkHandle();
  ZkHandle(const ZkHandle&) = delete;
  ZkHandle& operator=(const ZkHandle&) = delete;

  // Each is answered by an Answered with `token`, unless it fails here: then nothing was sent. A
  // `watch` other than 0 is left with the node and told in a Noticed, once.
  Status Get(const std::string& path, uint64_t token, uint64_t watch);       // Result<Node>
  Status Children(const std::string& path, uint64_t token, uint64_t watch);  // Result<strings>
  Status Exists(const std::string& path, uint64_t token, uint64_t watch);    // Status
  Status Sync(const std::string& path, uint64_t token);                      // Status
  Status Multi(std::vector<Write> writes, uint64_t token);                   // WriteOutcome

  // What the servers have agreed to; what was asked for before the first connection.
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

  // What the library still holds a pointer to, answered or not.
  std::mutex mutex_;
  std::unordered_map<const void*, std::unique_ptr<Call>> calls_;
};

}  // namespace firn
