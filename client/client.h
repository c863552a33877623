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
#include "client/lease/lease_options.h"
#include "client/lease/local_generator.h"
#include "common/base/status.h"
#include "common/id/explain.h"
#include "common/id/id_run.h"

namespace firn {

// A client of a cluster of Firn servers.
//
//     firn::Client client({.servers = "list://10.0.0.7:7609,10.0.0.8:7609"});
//     firn::Result<int64_t> id = client.GetId("order");
//
// Thread-safe: use one client for all threads, as long as the program runs. An empty tag is the
// servers' default tag. A failing call ends within its deadline; its status lists every attempt
// with the server, the outcome and the duration:
//
//   kInvalid, kNotFound, kDenied, kExhausted   as the server reported; a retry will not help
//   kUnavailable                               no server could answer now
//   kInternal                                  a defect of a server
//
// A failed call may have used up ids; they are never issued again.
//
// After fork() the child may use the object: it starts again, with its own connections and local
// ranges. Asynchronous calls of the parent are answered only in the parent. A child
// that was forked in a callback or hook may only exec or _exit.
//
// Sharp edge: callbacks run on a thread of the client, unless ClientOptions::callbacks runs them
// elsewhere. They may call any method. On that thread, a callback that blocks delays all other
// asynchronous calls, also beyond their deadlines, but not blocking calls. Exceptions of a callback
// or hook are discarded.
class Client {
 public:
  // The callback of a call. Not default-constructible, so that `{}` means the options of a call.
  template <typename T>
  struct Callback : std::function<void(Result<T>)> {
    template <std::invocable<Result<T>> Done>
    Callback(Done done) : std::function<void(Result<T>)>(std::move(done)) {}
  };

  // Returns a client whose status is ok, or its failure. Does not wait for a server.
  static Result<std::unique_ptr<Client>> Make(ClientOptions options);

  // Never fails and does not wait: status(), and every call, report invalid options and a lack of
  // threads or descriptors.
  explicit Client(ClientOptions options);

  // Ends asynchronous calls in progress: their callbacks receive kUnavailable; calls that these
  // start are never answered. No other thread may be in a call. Must not be called from a callback.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // kInvalid names every fault of the options.
  Status status() const;

  // --- blocking -------------------------------------------------------------------------------

  Result<int64_t> GetId(std::string_view tag, const CallOptions& call = {});

  // Returns exactly `count` ids, 1 to 100000; in ascending order, unless the tag is obfuscated.
  Result<std::vector<int64_t>> GetIds(std::string_view tag, int32_t count,
                                      const CallOptions& call = {});

  // Returns ids in compact form; thrift/firn.thrift limits their number for the tag.
  Result<std::vector<IdRun>> GetRuns(std::string_view tag, int64_t count,
                                     const CallOptions& call = {});

  // Returns one id in the text form of its tag.
  Result<std::string> GetText(std::string_view tag, const CallOptions& call = {});

  // Returns the fields of an id, by a layout's name or text; "": the cluster's layout.
  Result<Explanation> Explain(int64_t id, std::string_view layout = {},
                              const CallOptions& call = {});

  // --- asynchronous ---------------------------------------------------------------------------
  // `done` is called once, on the thread of callbacks or where ClientOptions::callbacks runs it,
  // but never inside these calls. Exception: a client that could not start for lack of threads or
  // descriptors calls it at once.

  void GetId(std::string_view tag, Callback<int64_t> done, const CallOptions& call = {});
  void GetIds(std::string_view tag, int32_t count, Callback<std::vector<int64_t>> done,
              const CallOptions& call = {});
  void GetRuns(std::string_view tag, int64_t count, Callback<std::vector<IdRun>> done,
               const CallOptions& call = {});
  void GetText(std::string_view tag, Callback<std::string> done, const CallOptions& call = {});

  // Does not wait for callbacks, so the thread that runs them may wait for this call.
  std::future<Result<int64_t>> GetIdLater(std::string_view tag, const CallOptions& call = {});

  // --- ids made by this program -----------------------------------------------------------------

  // Opens a generator of ids under a leased machine id, and waits for its first lease, at most
  // `patience`. It uses the servers and TLS of this client, over its own connections, and may
  // outlive the client. kUnavailable: there is no lease; the message says why.
  Result<std::unique_ptr<LocalGenerator>> OpenGenerator(
      LeaseOptions options, Milliseconds patience = Milliseconds(10'000)) const;

  // --- observing ------------------------------------------------------------------------------

  ClusterView cluster() const;
  ClientCounters counters() const;

  // Returns the supply that local_ranges created, or null; a forked child has its own. Valid until
  // the client is destroyed.
  LocalSupply* local() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace firn
