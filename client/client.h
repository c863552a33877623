#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/call_report.h"
#include "client/client_options.h"
#include "client/client_view.h"
#include "common/base/status.h"
#include "common/id/explain.h"
#include "common/id/id_run.h"

namespace firn {

// Ids from a cluster of Firn servers.
//
//     firn::Client client({.servers = "list://10.0.0.7:7609,10.0.0.8:7609"});
//     firn::Result<int64_t> id = client.GetId("order");
//
// Thread-safe: any number of threads share one client, for as long as the program runs. An empty
// tag is the servers' default one. Failing calls end within their deadline; their status lists
// every server that was asked, what happened, and after how long:
//
//   kInvalid, kNotFound, kDenied, kExhausted   as the server said; asking again will not help
//   kUnavailable                               nobody could answer now
//   kInternal                                  a defect of a server
//
// A failed call may have used up ids; nobody else ever gets those.
//
// After fork() the child may go on using the object: it begins anew, with connections and local
// ranges of its own, and asynchronous calls of the parent are answered in the parent only. A child
// that was forked in a callback or hook may only exec or _exit.
//
// Sharp edge: callbacks run on one thread of the client's, unless ClientOptions::callbacks runs
// them elsewhere. They may call any method; on that thread one that waits keeps all other
// asynchronous calls waiting, beyond their deadlines too, but no blocking one, and one that throws
// ends the program.
class Client {
 public:
  // What a call ends in. It is not made of nothing, so that `{}` stands for the options of a call.
  template <typename T>
  struct Callback : std::function<void(Result<T>)> {
    template <std::invocable<Result<T>> Done>
    Callback(Done done) : std::function<void(Result<T>)>(std::move(done)) {}
  };

  // A client whose status is ok, or why there is none. Waits for no server either.
  static Result<std::unique_ptr<Client>> Make(ClientOptions options);

  // Never fails and does not wait: options that cannot be used, and a process that has no threads
  // or descriptors left, are told by status(), and by every call.
  explicit Client(ClientOptions options);

  // Ends asynchronous calls that are under way: their callbacks are called with kUnavailable; what
  // those begin is never answered. No other thread may be in a call. Not in a callback.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // kInvalid names every fault of the options.
  Status status() const;

  // --- blocking -------------------------------------------------------------------------------

  Result<int64_t> GetId(std::string_view tag, const CallOptions& call = {});

  // Exactly `count` ids, 1 to 100000; in ascending order, unless the tag obfuscates them.
  Result<std::vector<int64_t>> GetIds(std::string_view tag, int32_t count,
                                      const CallOptions& call = {});

  // The same in compact form; at most what thrift/firn.thrift allows for the tag.
  Result<std::vector<IdRun>> GetRuns(std::string_view tag, int64_t count,
                                     const CallOptions& call = {});

  // One id in the text form of its tag.
  Result<std::string> GetText(std::string_view tag, const CallOptions& call = {});

  // The fields of an id, read by a layout's name or text; an empty one is the cluster's.
  Result<Explanation> Explain(int64_t id, std::string_view layout = {},
                              const CallOptions& call = {});

  // --- asynchronous ---------------------------------------------------------------------------
  // `done` is called once, on the thread of callbacks or where ClientOptions::callbacks runs it,
  // never inside these calls; only a client that could not begin for want of threads or descriptors
  // says so at once.

  void GetId(std::string_view tag, Callback<int64_t> done, const CallOptions& call = {});
  void GetIds(std::string_view tag, int32_t count, Callback<std::vector<int64_t>> done,
              const CallOptions& call = {});
  void GetRuns(std::string_view tag, int64_t count, Callback<std::vector<IdRun>> done,
               const CallOptions& call = {});
  void GetText(std::string_view tag, Callback<std::string> done, const CallOptions& call = {});

  // Waits for no callback: whoever runs those may wait for this.
  std::future<Result<int64_t>> GetIdLater(std::string_view tag, const CallOptions& call = {});

  // --- looking --------------------------------------------------------------------------------

  ClusterView cluster() const;
  ClientCounters counters() const;

  // What local_ranges made; null without, and in a forked child another one than in its parent.
  // Valid until the client is destroyed.
  LocalSupply* local() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace firn
