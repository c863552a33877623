#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "client/server_source.h"
#include "common/base/units.h"
#include "common/id/explain.h"
#include "common/id/id_run.h"

namespace firn::client {

// What is asked of a server.
struct Ask {
  enum class Method : uint8_t { kGetId, kGetIds, kGetRuns, kGetText, kExplain, kStatus, kServers };
  Method method = Method::kGetId;
  std::string tag{};
  int64_t number = 0;  // how many ids; of kExplain: the id; of kServers: the version that is known
  std::string layout{};  // of kExplain

  // A server that drains answers all but these.
  bool WantsIds() const {
    return method == Method::kGetId || method == Method::kGetIds || method == Method::kGetRuns ||
           method == Method::kGetText;
  }
};

// What a server says of itself, as far as a client cares.
struct ServerFacts {
  std::string cluster_uuid;
  std::string cluster_name;
  std::string layout;
  bool draining = false;
  WallMs wall{};                      // its clock when it said so
  std::set<std::string> own_numbers;  // tags whose ids need no machine id, such as segments'
  // Tags whose ids are made of time and shown as they were issued.
  std::set<std::string, std::less<>> timed;
};

// The answer to an Ask: only what its method is about is set.
struct Reply {
  int64_t id = 0;
  std::vector<int64_t> ids;
  std::vector<IdRun> runs;
  std::string text;
  Explanation explanation;
  ServerFacts facts;
  ToldServers told;
};

}  // namespace firn::client
