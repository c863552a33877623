#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/lease/lease_request.h"
#include "client/server_source.h"
#include "common/base/units.h"
#include "common/id/explain.h"
#include "common/id/id_run.h"

namespace firn::client {

// The addresses of a request's servers. If an answer is lost, the request is sent to no other
// server, because the first one may have executed it.
struct Route {
  std::string only{};                 // the only server; empty: any
  std::vector<std::string> last{};    // used if no other server is left
  std::vector<std::string> except{};  // not used
};

// A request to a server.
struct Ask {
  enum class Method : uint8_t {
    kGetId,
    kGetIds,
    kGetRuns,
    kGetText,
    kExplain,
    kStatus,
    kServers,
    kLease,
    kRenewLease,
    kReleaseLease
  };
  Method method = Method::kGetId;
  std::string tag{};
  int64_t number = 0;    // number of ids; kExplain: the id; kServers: the known version
  std::string layout{};  // for kExplain
  std::shared_ptr<const LeaseRequest> lease{};  // for the methods of leases
  std::shared_ptr<const Route> route{};         // null: any server, also after a lost answer

  // A server that drains answers all but these.
  bool WantsIds() const {
    return method == Method::kGetId || method == Method::kGetIds || method == Method::kGetRuns ||
           method == Method::kGetText;
  }
};

// The part of a server's status that a client uses.
struct ServerFacts {
  std::string cluster_uuid;
  std::string cluster_name;
  std::string layout;
  bool draining = false;
  WallMs wall{};                      // its clock at that time
  std::set<std::string> own_numbers;  // tags whose ids need no machine id, such as segment tags
  // Tags whose ids contain a time and are not obfuscated.
  std::set<std::string, std::less<>> timed;
};

// The answer to an Ask. Only the fields of its method are set. Every call in progress has one, so
// the large and rare fields are pointers.
struct Reply {
  int64_t id = 0;
  std::vector<int64_t> ids;
  std::vector<IdRun> runs;
  std::string text;
  std::shared_ptr<const Explanation> explanation;
  std::shared_ptr<const ServerFacts> facts;
  std::shared_ptr<const ToldServers> told;
  std::shared_ptr<const LeaseOutcome> lease;  // a refused lease is an answer, too
};

}  // namespace firn::client
