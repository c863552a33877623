#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "client/call/io_thread.h"
#include "client/call/pipeline.h"
#include "client/call/request.h"
#include "client/fleet/fleet.h"
#include "common/net/name_lookup.h"

namespace firn::client {

// The connections of one IO thread to all servers, and background work for no particular call:
// probes of unhealthy servers, and name lookups. Used by the IO thread.
class Connections final : public Sender, private Pipeline::Owner {
 public:
  static constexpr Micros kUpkeepInterval{100'000};

  // `most`: maximum connections per server. `gather`: a request for one id uses the connection on
  // which one for the same tag was queued last in this turn, so that both leave in one write and
  // their answers usually arrive in one read.
  Connections(const PipelineHost& host, size_t most, bool gather);

  std::shared_ptr<const Connection> Send(RequestPtr request, size_t attempt,
                                         const ServerPtr& server, bool fresh) override;

  // Closes idle connections to servers that have left the list.
  void CloseUnlisted();

  // Probes servers and looks up names, now and at each interval.
  void StartUpkeep();

  // Ends the upkeep and all connections.
  void CloseAll();

 private:
  using Pipelines = std::vector<PipelinePtr>;

  // Returns the connection to this server on which `ask` gathers with others, else the one with the
  // fewest requests in flight, else a new one. Null if there is none and none may be opened yet.
  // `fresh`: see Sender.
  PipelinePtr To(const ServerPtr& server, const Ask& ask, bool fresh);
  void OnClosed(Pipeline& pipeline) override;
  PipelinePtr Open(const ServerPtr& server, Pipelines& among, Pipeline::Checked checked);
  void Probe(const ServerPtr& server);
  void DoUpkeep();

  Micros now() const { return host_.io.now(); }

  const PipelineHost host_;
  const size_t most_;
  const bool gather_;
  std::unordered_map<uint64_t, Pipelines> pipelines_;  // by the server's number
  Pipelines probes_;                                   // connections only for probes
  IoThread::Timer upkeep_timer_;
  NameLookup names_;
  bool stopped_ = false;
};

}  // namespace firn::client
