#include "client/call/caller.h"

#include <memory>

namespace firn::client {

Caller::Caller(Fleet& fleet, TlsContext& tls, const Options& options, const Clock& clock,
               CloseOnFork& fds)
    : io_(clock),
      connections_({.io = io_,
                    .fleet = fleet,
                    .tls = tls,
                    .fds = fds,
                    .limit = options.limits.attempt_limit,
                    .counts = options.limits.counts},
                   options.connections, options.gather),
      host_{.jobs = io_.jobs(),
            .bells = io_.bells(),
            .fleet = fleet,
            .sender = connections_,
            .limits = options.limits} {
  if (options.upkeep) io_.Post([this] { connections_.StartUpkeep(); });
  io_.Run();
}

void Caller::Stop() {
  io_.Post([this] {
    host_.stopping = true;
    for (const JobPtr& job : io_.jobs().jobs()) io_.jobs().MarkReady(*job);
  });
  io_.Stop([this] { connections_.CloseAll(); });
}

CallPtr Caller::Start(Ask ask, Micros deadline, CallReport* report, CallDone done) {
  auto call = std::make_shared<Call>(host_, std::move(ask), deadline, report, std::move(done));
  if (host_.stopping) return call;
  if (++host_.calls > kCallsMax) {
    Post([call] { call->Refuse(Unavailable("too many asynchronous calls are under way")); });
    return call;
  }
  if (host_.limits.counts) host_.fleet.CountCall();
  io_.Start(call);
  return call;
}

void Caller::OnNews() {
  if (has_news_.exchange(true)) return;
  Post([this] {
    has_news_ = false;
    connections_.CloseUnlisted();
    for (const JobPtr& job : io_.jobs().jobs()) static_cast<Call&>(*job).OnNews();
  });
}

}  // namespace firn::client
