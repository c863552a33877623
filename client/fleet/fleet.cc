#include "client/fleet/fleet.h"

#include <algorithm>
#include <utility>

#include "client/fleet/subset.h"
#include "common/base/call_hook.h"
#include "common/base/cat.h"

namespace firn::client {
namespace {

constexpr Micros kResolveAgain{2'000'000};
constexpr Micros kResolveInTime{40'000'000};

}  // namespace

Fleet::Fleet(const ClientOptions& options, const Clock& clock, uint64_t seed,
             std::function<void()> news)
    : name_(seed),
      rack_(options.rack),
      servers_max_(options.servers_max > 0 ? static_cast<size_t>(options.servers_max) : SIZE_MAX),
      tls_(options.tls.has_value()),
      attempt_limit_(options.attempt_limit),
      on_event_(options.on_event),
      clock_(clock),
      news_(std::move(news)),
      own_numbers_(std::make_shared<TagSet>()),
      check_(options.cluster_uuid),
      entropy_(seed) {
  for (Seat& seat : seats_) seat.entropy = SeededEntropy(entropy_.Next());
  common_seat_.entropy = SeededEntropy(entropy_.Next());
}

// --- the list -----------------------------------------------------------------------------------

void Fleet::Apply(const ServerList& list) {
  const Micros now = clock_.BootMicros();
  size_t known = 0;
  {
    const std::lock_guard lock(mutex_);
    fixed_ = list.fixed;
    from_cache_ = list.from_cache;
    check_.Learn(list.cluster);
    std::map<std::string, ServerPtr> before;
    before.swap(servers_);
    for (const KnownServer& server : list.servers) {
      if (servers_.size() < ServerList::kServersMax) Merge(server, before, now);
    }
    for (const auto& [address, server] : before) {
      if (server != nullptr && !servers_.contains(address)) server->listed = false;
    }
    Choose();
    NewRoster();
    ++counters_.lists;
    known = servers_.size();
  }
  Tell({{ClientEvent::Kind::kList, "",
         Cat(known, " servers", list.from_cache ? ", from a file" : "")}});
  TellNews();
}

void Fleet::Merge(const KnownServer& known, std::map<std::string, ServerPtr>& before, Micros now) {
  const Result<Endpoint> endpoint = Endpoint::ParseServer(known.address);
  if (!endpoint.ok()) return;
  ServerPtr server = before[known.address];
  if (server == nullptr) {
    server = std::make_shared<Server>(next_number_++, known.address, *endpoint);
    server->first_seen = now;
    const Address number = NumericAddress(*endpoint);
    if (number.known()) server->addresses.Learn({number});
  }
  const bool told_apart = !known.incarnation.empty() && !server->known.incarnation.empty();
  if (told_apart && known.incarnation != server->known.incarnation) Reset(*server, now);
  server->known = known;
  server->lot = DrawLot(name_, known.address);
  server->tls = (tls_ || known.tls) && !server->endpoint.IsUnix();
  server->membership.Hear(Membership::Event::kListed, now, entropy_);
  server->limits.Listed(/*unready=*/known.phase == ServerPhase::kNotReady);
  servers_[known.address] = std::move(server);
}

void Fleet::Reset(Server& server, Micros now) {
  server.health = Health();
  server.limits.Reset();
  server.well.store(false, std::memory_order_relaxed);
  server.latency.Forget();
  server.first_seen = now;
}

// --- retries, waiting, probing ------------------------------------------------------------------

bool Fleet::TakeRetry(Micros now) {
  const std::lock_guard lock(mutex_);
  const uint64_t calls = calls_.load(std::memory_order_relaxed);
  budget_.Calls(calls - std::exchange(calls_earned_for_, calls));
  const bool taken = budget_.Take(now);
  ++(taken ? counters_.retries : counters_.retries_denied);
  return taken;
}

bool Fleet::MayMove(Server& from, Micros began, Micros now) {
  const std::lock_guard lock(mutex_);
  const bool others_answer = std::ranges::any_of(servers_, [&](const auto& one) {
    return one.second.get() != &from &&
           one.second->last_answer.load(std::memory_order_relaxed) > began;
  });
  if (!others_answer) return false;
  if (now >= from.moves_again_at) {
    from.moves_until = now + attempt_limit_;
    from.moves_again_at = now + kMovesEvery * attempt_limit_;
  }
  const bool may = now < from.moves_until;
  counters_.free_retries += may ? 1U : 0U;
  return may;
}

std::vector<ServerPtr> Fleet::TakeUnresolved(Micros now) {
  const std::lock_guard lock(mutex_);
  const bool widened = Widened();
  std::vector<ServerPtr> unresolved;
  for (const auto& [address, server] : servers_) {
    if (!server->near && !widened) continue;
    const bool named = !NumericAddress(server->endpoint).known();
    // If its server does not respond, or another one does, the name may have a new address.
    const bool wanted = server->addresses.empty() || !server->reached || server->health.out() ||
                        !server->membership.member() || now >= server->resolve_by;
    if (!named || !wanted || now < server->resolve_at) continue;
    server->resolve_at = now + kResolveAgain;
    server->resolve_by = now + AtLeast(kResolveInTime);
    ++counters_.lookups;
    unresolved.push_back(server);
  }
  return unresolved;
}

void Fleet::Resolved(const std::string& address, const std::vector<Address>& found) {
  {
    const std::lock_guard lock(mutex_);
    const auto server = servers_.find(address);
    if (server == servers_.end() || found.empty()) return;
    if (!server->second->addresses.Learn(found)) return;
    NewRoster();
    server->second->reached = true;  // assumed until a connection fails
  }
  TellNews();
}

std::vector<Address> Fleet::AddressesInTurn(Server& server) {
  const std::lock_guard lock(mutex_);
  return server.addresses.InTurn();
}

void Fleet::Dialled(Server& server, const std::optional<Address>& reached,
                    std::span<const Address> led_nowhere, Micros now) {
  const std::lock_guard lock(mutex_);
  ++(reached ? counters_.connects : counters_.connects_failed);
  for (const Address& address : led_nowhere) server.addresses.LedNowhere(address);
  if (!reached) {
    server.connect_at = now + server.dialling.Next(now, entropy_);
    return;
  }
  server.reached = true;
  server.addresses.Led(*reached);
  server.connect_at = Micros(0);
}

void Fleet::TellNews() {
  if (news_) news_();
}

ClusterView Fleet::View() const {
  const Micros now = clock_.BootMicros();
  const std::lock_guard lock(mutex_);
  ClusterView view{.servers = {}, .cluster = check_.known(), .from_cache = from_cache_};
  for (const auto& [address, server] : servers_) {
    // As for a call without a tag.
    ServerHealth standing =
        std::max(server->Standing(), server->limits.For("", *own_numbers_, now));
    if (server->addresses.empty()) standing = std::max(standing, ServerHealth::kEjected);
    const bool healthy = standing == ServerHealth::kHealthy;
    view.servers.push_back({.known = server->known,
                            .health = standing,
                            .why = healthy ? std::string() : server->why,
                            .latency = Micros(static_cast<int64_t>(server->latency.At(now))),
                            .in_flight = server->in_flight,
                            .answered = server->answered,
                            .failed = server->failed});
  }
  return view;
}

std::string Fleet::ReportNoServer() const {
  const std::string lack = "no provider: " + Lack();
  Tell({{ClientEvent::Kind::kNoServer, "", lack}});
  return lack;
}

std::string Fleet::Lack() const {
  const std::lock_guard lock(mutex_);
  if (servers_.empty()) {
    return counters_.lists == 0 ? "no list of servers was received yet" : "no server is known";
  }
  const std::string text = Cat("none of the ", servers_.size(), " known servers can be called now");
  for (const auto& [address, server] : servers_) {
    if (server->Standing() == ServerHealth::kQuarantined) {
      return Cat(text, "; ", address, ": ", server->why);
    }
    if (server->addresses.empty())
      return Cat(text, "; ", address, ": its name has not been resolved");
  }
  return text;
}

void Fleet::TellNotPrefetched(const std::string& tag, const Status& why) const {
  Tell({{ClientEvent::Kind::kNotPrefetched, "", Cat("tag '", tag, "': ", why.message())}});
}

ClientCounters Fleet::counters() const {
  const std::lock_guard lock(mutex_);
  ClientCounters counters = counters_;
  counters.calls = calls_.load(std::memory_order_relaxed);
  counters.attempts = attempts_.load(std::memory_order_relaxed);
  return counters;
}

void Fleet::Count(uint64_t ClientCounters::*counter, uint64_t n) {
  const std::lock_guard lock(mutex_);
  counters_.*counter += n;
}

void Fleet::Tell(const Events& told) const {
  for (const ClientEvent& event : told) CallHook(on_event_, event);
}

}  // namespace firn::client
