#include "client/fleet/fleet.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"

namespace firn::client {
namespace {

constexpr Micros kResolveAgain{2'000'000};
constexpr Micros kResolveInTime{40'000'000};

void PutFirst(const Address& address, std::vector<Address>& addresses) {
  const auto found = std::find(addresses.begin(), addresses.end(), address);
  if (found != addresses.end()) std::rotate(addresses.begin(), found, found + 1);
}

// Of all that a call of any tag would find, the worst.
ServerFitness StandingOf(const Server& server) {
  const Fitness& fitness = server.fitness;
  const KnownServer& known = server.known;
  const bool leaves = known.phase == ServerPhase::kDraining || known.phase == ServerPhase::kOffline;
  if (fitness.quarantined() || fitness.strange()) return ServerFitness::kQuarantined;
  if (fitness.draining() || leaves) return ServerFitness::kDraining;
  if (known.disabled || known.weight <= 0) return ServerFitness::kDisabled;
  if (fitness.health.resting()) return ServerFitness::kResting;
  return fitness.health.failing() ? ServerFitness::kFailing : ServerFitness::kFit;
}

bool Contains(std::span<const ServerPtr> servers, const Server* server) {
  return std::any_of(servers.begin(), servers.end(),
                     [server](const ServerPtr& one) { return one.get() == server; });
}

}  // namespace

Fleet::Fleet(const ClientOptions& options, const Clock& clock, uint64_t seed)
    : rack_(options.rack),
      attempt_limit_(options.attempt_limit),
      on_event_(options.on_event),
      clock_(clock),
      check_(options.cluster_uuid),
      balancer_(MakeBalancer(options.balancing)),
      entropy_(seed) {}

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
    ++counters_.lists;
    known = servers_.size();
  }
  Tell({{ClientEvent::Kind::kList, "",
         Cat(known, " servers", list.from_cache ? ", from a file" : "")}});
  TellNews();
}

void Fleet::Merge(const KnownServer& known, std::map<std::string, ServerPtr>& before, Micros now) {
  const Result<Endpoint> endpoint = Endpoint::Parse(known.address);
  if (!endpoint.ok() || endpoint->port == 0) return;
  ServerPtr server = before[known.address];
  if (server == nullptr) {
    server = std::make_shared<Server>(next_number_++, known.address, *endpoint);
    server->first_seen = now;
    const Address number = NumericAddress(*endpoint);
    if (number.known()) server->addresses = {number};
  }
  const bool told_apart = !known.incarnation.empty() && !server->known.incarnation.empty();
  if (told_apart && known.incarnation != server->known.incarnation) BeginAnew(*server, now);
  server->known = known;
  server->fitness.Hear(Fitness::Event::kListed, now, entropy_);
  server->limits.Reopen();
  servers_[known.address] = std::move(server);
}

void Fleet::BeginAnew(Server& server, Micros now) {
  server.fitness.health = Health();
  server.limits.BeginAnew();
  server.well.store(false, std::memory_order_relaxed);
  server.latency.Forget();
  server.first_seen = now;
}

// --- picking ------------------------------------------------------------------------------------

ServerFitness Fleet::FitnessFor(std::string_view tag, const Server& server, Micros now) const {
  const bool unready = server.known.phase == ServerPhase::kNotReady && !own_numbers_.contains(tag);
  return std::max({StandingOf(server), server.limits.For(tag, own_numbers_, now),
                   unready ? ServerFitness::kResting : ServerFitness::kFit});
}

bool Fleet::Panics() {
  size_t members = 0, fit = 0;
  for (const auto& [address, server] : servers_) {
    if (server->known.disabled || server->fitness.strange()) continue;
    ++members;
    fit += StandingOf(*server) == ServerFitness::kFit ? 1U : 0U;
  }
  const bool before = std::exchange(panics_, fit * 2 < members);
  counters_.panics += panics_ && !before ? 1U : 0U;
  return panics_;
}

double Fleet::WeightOf(const Server& server, Micros now) const {
  constexpr double kColdShare = 0.1;
  const double age =
      static_cast<double>((now - server.first_seen).count()) / static_cast<double>(kWarmUp.count());
  return std::max(server.known.weight, 1) * std::clamp(age, kColdShare, 1.0);
}

// Leaves the fittest servers in offered_.
void Fleet::Offer(std::span<const ServerPtr> tried, std::string_view tag, Micros now) {
  ServerFitness best = ServerFitness::kQuarantined;
  const bool panics = Panics();
  offered_.clear();
  for (auto& [address, server] : servers_) {
    ServerFitness fitness = FitnessFor(tag, *server, now);
    if (panics && server->fitness.quarantined()) fitness = ServerFitness::kResting;
    if (fitness == ServerFitness::kQuarantined || server->addresses.empty()) continue;
    if (fitness > best || Contains(tried, server.get())) continue;
    if (fitness < best) offered_.clear();
    best = fitness;
    offered_.push_back(&server);
  }
}

void Fleet::KeepOwnRack() {
  const auto elsewhere = [this](const ServerPtr* server) {
    return (*server)->known.rack != *rack_;
  };
  if (!rack_ || std::all_of(offered_.begin(), offered_.end(), elsewhere)) return;
  std::erase_if(offered_, elsewhere);
}

ServerPtr Fleet::Pick(std::string_view tag, std::span<const ServerPtr> tried, Micros now) {
  const std::lock_guard lock(mutex_);
  Offer(tried, tag, now);
  if (offered_.empty()) return nullptr;
  KeepOwnRack();
  loads_.clear();
  for (const ServerPtr* server : offered_) {
    const Server& one = **server;
    loads_.push_back({one.number, WeightOf(one, now), one.latency.At(now),
                      one.in_flight.load(std::memory_order_relaxed)});
  }
  const ServerPtr picked = *offered_[balancer_->Pick(loads_, entropy_)];
  Borrow(*picked);
  return picked;
}

// --- retries, waiting, looking ------------------------------------------------------------------

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
  const bool others_answer = std::any_of(servers_.begin(), servers_.end(), [&](const auto& one) {
    return one.second.get() != &from &&
           one.second->last_answer.load(std::memory_order_relaxed) > began;
  });
  if (!others_answer) return false;
  if (now >= from.moves_again_at) {
    from.moves_until = now + attempt_limit_;
    from.moves_again_at = now + kMovesEvery * attempt_limit_;
  }
  const bool may = now < from.moves_until;
  counters_.moves += may ? 1U : 0U;
  return may;
}

std::vector<ServerPtr> Fleet::TakeUnresolved(Micros now) {
  const std::lock_guard lock(mutex_);
  std::vector<ServerPtr> unresolved;
  for (const auto& [address, server] : servers_) {
    const bool named = !NumericAddress(server->endpoint).known();
    // A name may have moved to another address when its server does not answer any more, or is
    // another one.
    const bool wanted = server->addresses.empty() || !server->reached ||
                        server->fitness.health.out() || !server->fitness.member() ||
                        now >= server->resolve_by;
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
    std::vector<Address>& known = server->second->addresses;
    std::vector<Address> fresh = found;
    if (!known.empty()) PutFirst(known.front(), fresh);
    if (fresh == known) return;
    known = std::move(fresh);
    server->second->reached = true;  // as far as anybody knows
  }
  TellNews();
}

std::vector<Address> Fleet::AddressesOf(const Server& server) {
  const std::lock_guard lock(mutex_);
  return server.addresses;
}

void Fleet::Reached(Server& server, const Address& address) {
  const std::lock_guard lock(mutex_);
  server.reached = true;
  PutFirst(address, server.addresses);
}

void Fleet::TellNews() {
  if (news_) news_();
}

ClusterView Fleet::View() const {
  const Micros now = clock_.BootMicros();
  const std::lock_guard lock(mutex_);
  ClusterView view{.servers = {}, .cluster = check_.known(), .from_cache = from_cache_};
  for (const auto& [address, server] : servers_) {
    ServerFitness fitness = FitnessFor({}, *server, now);
    const bool named = !server->addresses.empty();
    if (!named) fitness = std::max(fitness, ServerFitness::kResting);
    const bool fit = fitness == ServerFitness::kFit;
    view.servers.push_back({.known = server->known,
                            .fitness = fitness,
                            .why = fit ? std::string() : server->fitness.why,
                            .latency = Micros(static_cast<int64_t>(server->latency.At(now))),
                            .in_flight = server->in_flight,
                            .answered = server->answered,
                            .failed = server->failed});
  }
  return view;
}

std::string Fleet::TellNobodyToAsk() const {
  const std::string lack = "no provider: " + Lack();
  Tell({{ClientEvent::Kind::kNoServer, "", lack}});
  return lack;
}

std::string Fleet::Lack() const {
  const std::lock_guard lock(mutex_);
  if (servers_.empty()) {
    return counters_.lists == 0 ? "no list of servers has come yet" : "no server is known";
  }
  const std::string text = Cat("of ", servers_.size(), " known servers none may be asked");
  for (const auto& [address, server] : servers_) {
    if (StandingOf(*server) == ServerFitness::kQuarantined) {
      return Cat(text, "; ", address, ": ", server->fitness.why);
    }
    if (server->addresses.empty()) return Cat(text, "; ", address, ": its name is not resolved");
  }
  return text;
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
  if (!on_event_) return;
  for (const ClientEvent& event : told) on_event_(event);
}

}  // namespace firn::client
