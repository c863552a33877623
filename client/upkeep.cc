#include "client/upkeep.h"

#include <cstring>

namespace firn::client {

using boost::system::error_code;

void Upkeep::Run() {
  const Micros now = clock_.BootMicros();
  for (const ServerPtr& server : fleet_.TakeUnresolved(now)) Resolve(server);
  for (const ServerPtr& server : fleet_.TakeProbes(now)) {
    user_.Probe(server, [this, server](const Outcome& outcome, const ServerFacts& facts) {
      fleet_.Probed(*server, outcome, facts, clock_.BootMicros());
    });
  }
  fleet_.CloseOldSockets(now);
  timer_.expires_after(kInterval);
  timer_.async_wait([this](const error_code& error) {
    // A timer that has run out already cannot be cancelled any more.
    if (!error && !stopped_) Run();
  });
}

void Upkeep::Stop() {
  stopped_ = true;
  timer_.cancel();
  resolver_.cancel();
}

void Upkeep::Resolve(const ServerPtr& server) {
  const Endpoint& endpoint = server->endpoint;
  resolver_.async_resolve(endpoint.host, std::to_string(endpoint.port),
                          [this, server](const error_code& error, const auto& found) {
                            if (error || found.empty()) return;  // asked again before long
                            const boost::asio::ip::tcp::endpoint first = *found.begin();
                            Address address;
                            address.length = static_cast<socklen_t>(first.size());
                            std::memcpy(&address.storage, first.data(), first.size());
                            fleet_.Resolved(*server, address);
                          });
}

}  // namespace firn::client
