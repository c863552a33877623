#include "client/call/upkeep.h"

namespace firn::client {

using boost::system::error_code;

void Upkeep::Run() {
  const Micros now = clock_.BootMicros();
  for (const ServerPtr& server : fleet_.TakeUnresolved(now)) {
    names_.Start(server->name, server->endpoint);
  }
  for (const ServerPtr& server : fleet_.TakeProbes(now)) {
    probe_(server, [this, server](const Outcome& outcome, const ServerFacts& facts) {
      fleet_.Probed(*server, outcome, facts, clock_.BootMicros());
    });
  }
  timer_.expires_after(kInterval);
  timer_.async_wait([this](const error_code& error) {
    // A timer that has run out already cannot be cancelled any more.
    if (!error && !stopped_) Run();
  });
}

void Upkeep::Stop() {
  stopped_ = true;
  timer_.cancel();
  names_.Stop();
}

}  // namespace firn::client
