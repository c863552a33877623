// How a Fleet picks a server for a call: each thread picks from its own roster.

#include <algorithm>
#include <utility>
#include <vector>

#include "client/fleet/fleet.h"
#include "client/fleet/subset.h"

namespace firn::client {
namespace {

int64_t WeightOf(const Server& server, Micros now) {
  constexpr int64_t kSteps = 10;
  const int64_t step = (now - server.first_seen) / (Fleet::kWarmUp / kSteps);
  return std::max<int64_t>(server.known.weight, 1) * std::clamp<int64_t>(step, 1, kSteps);
}

}  // namespace

void Fleet::Choose() {
  std::vector<Server*> servers;
  std::vector<SubsetLot> lots;
  for (const auto& [address, server] : servers_) {
    servers.push_back(server.get());
    lots.push_back({server->lot / std::max(server->known.weight, 1), server->known.rack});
    server->kept = server->near = false;
  }
  const size_t near = std::max(servers_max_, kHealthyMin);
  for (const size_t at : ChooseSubset(lots, near, rack_)) servers[at]->near = true;
  for (const size_t at : ChooseSubset(lots, servers_max_, rack_)) servers[at]->kept = true;
}

bool Fleet::Widened() const {
  if (servers_.size() <= servers_max_) return false;
  const size_t healthy = CountIf([](const Server& one) { return one.kept && one.healthy(); });
  return healthy < std::min(kHealthyMin, servers_max_);
}

bool Fleet::Panics() {
  const size_t members = CountIf([](const Server& one) { return one.counts(); });
  const size_t healthy = CountIf([](const Server& one) { return one.counts() && one.healthy(); });
  const bool before = std::exchange(panics_, healthy * 2 < members);
  counters_.panics += panics_ && !before ? 1U : 0U;
  return panics_;
}

std::shared_ptr<const Roster> Fleet::MakeRoster(Micros now) {
  const bool panics = Panics(), widened = Widened();
  std::vector<Roster::Entry> entries;
  Micros good_until = Micros::max();
  for (const auto& [address, server] : servers_) {
    const bool pardoned = panics && server->membership.quarantined();
    const ServerHealth standing = pardoned ? ServerHealth::kEjected : server->Standing();
    if (standing == ServerHealth::kQuarantined || server->addresses.empty()) continue;
    if (now < server->first_seen + kWarmUp) good_until = now + kWarmUp / 20;
    entries.push_back({.server = server,
                       .weight = WeightOf(*server, now),
                       .standing = standing,
                       .spare = !server->kept && !widened,
                       .elsewhere = rack_ && server->known.rack != *rack_});
  }
  std::ranges::stable_sort(entries, {}, [](const auto& entry) { return entry.rank(); });
  return std::make_shared<const Roster>(std::move(entries), own_numbers_, good_until);
}

void Fleet::Renew(Seat& seat, Micros now) {
  const std::lock_guard lock(mutex_);
  const uint64_t version = version_.load(std::memory_order_relaxed);
  if (roster_ == nullptr || roster_version_ != version || now >= roster_->good_until()) {
    roster_ = MakeRoster(now);
    roster_version_ = version;
  }
  seat.roster = roster_;
  seat.version = version;
}

ServerPtr Fleet::PickFrom(Seat& seat, std::string_view tag, std::span<const ServerPtr> tried,
                          Micros now) {
  const bool good =
      seat.version == version_.load(std::memory_order_acquire) && now < seat.roster->good_until();
  if (!good) Renew(seat, now);
  ServerPtr picked = seat.roster->Pick(tag, tried, now, seat.entropy);
  if (picked != nullptr) Borrow(*picked);
  return picked;
}

ServerPtr Fleet::Pick(std::string_view tag, std::span<const ServerPtr> tried, Micros now) {
  const int index = ThreadIndex();
  if (index >= 0) [[likely]]
    return PickFrom(seats_[static_cast<size_t>(index)], tag, tried, now);
  const std::lock_guard lock(common_mutex_);
  return PickFrom(common_seat_, tag, tried, now);
}

ServerPtr Fleet::PickOne(const std::string& address, std::span<const ServerPtr> tried) {
  const std::lock_guard lock(mutex_);
  const auto found = servers_.find(address);
  if (found == servers_.end()) return nullptr;
  const ServerPtr& server = found->second;
  if (server->addresses.empty() || server->membership.foreign() ||
      std::ranges::find(tried, server) != tried.end()) {
    return nullptr;
  }
  Borrow(*server);
  return server;
}

std::vector<ServerPtr> Fleet::Find(std::span<const std::string> addresses) {
  std::vector<ServerPtr> listed;
  const std::lock_guard lock(mutex_);
  for (const std::string& address : addresses) {
    const auto found = servers_.find(address);
    if (found != servers_.end()) listed.push_back(found->second);
  }
  return listed;
}

}  // namespace firn::client
