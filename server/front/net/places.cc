#include "server/front/net/places.h"

#include <algorithm>
#include <tuple>

#include <boost/asio/ip/address.hpp>

namespace firn::front {
namespace {

// Memory costs something even if the connection has just made progress.
constexpr int64_t kStillMsMin = 100;

}  // namespace

void RankForClosing(std::vector<Closable>& all,
                    const std::function<uint64_t(uint64_t peer, uint64_t sum)>& total) {
  const auto group = [](const Closable& one) { return std::tuple(one.peer, one.before_others); };
  std::stable_sort(all.begin(), all.end(), [&](const Closable& a, const Closable& b) {
    return std::tuple(group(a), a.rank, b.since_ms) < std::tuple(group(b), b.rank, a.since_ms);
  });
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    uint64_t sum = 0;
    while (end < all.size() && group(all[end]) == group(all[begin])) sum += all[end++].cost;
    uint64_t elsewhere = all[begin].before_others ? 0 : total(all[begin].peer, sum) - sum;
    for (size_t i = begin; i < end; ++i) all[i].of_peer = elsewhere += all[i].cost;
  }
  std::stable_sort(all.begin(), all.end(), [](const Closable& a, const Closable& b) {
    return std::tuple(a.before_others, a.of_peer, a.rank, b.since_ms) <
           std::tuple(b.before_others, b.of_peer, b.rank, a.since_ms);
  });
}

void RankForMemory(std::vector<Closable>& all, int64_t now_ms) {
  for (Closable& one : all) {
    one.cost *= static_cast<uint64_t>(std::max(now_ms - one.since_ms, int64_t{0}) + kStillMsMin);
  }
  RankForClosing(all, [](uint64_t, uint64_t sum) { return sum; });
}

std::optional<Places::Place> Places::Take(uint64_t peer) {
  const std::lock_guard lock(mutex_);
  size_t& count = of_peer_[peer];
  const bool is_full = count >= limits_.connections_per_peer_max;
  if (is_full && reserved_taken_ >= reserved_) return std::nullopt;
  ++count;
  ++(is_full ? reserved_taken_ : taken_);
  return Place(*this, peer, is_full);
}

size_t Places::Of(uint64_t peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = of_peer_.find(peer);
  return found == of_peer_.end() ? 0 : found->second;
}

bool Places::overfull() const {
  const std::lock_guard lock(mutex_);
  return taken_ > limits_.connections_max - reserved_;
}

void Places::SetReserved(size_t places) {
  const std::lock_guard lock(mutex_);
  reserved_ = std::min(places, limits_.connections_max / 2);
}

bool Places::TakeReserved() {
  const std::lock_guard lock(mutex_);
  if (reserved_taken_ >= reserved_) return false;
  ++reserved_taken_;
  --taken_;
  return true;
}

void Places::GiveBack(const Place& place) {
  const std::lock_guard lock(mutex_);
  --(place.reserved_ ? reserved_taken_ : taken_);
  const auto found = of_peer_.find(place.peer_);
  if (--found->second == 0) of_peer_.erase(found);
}

uint64_t Places::PeerAt(const boost::asio::ip::address& address) {
  if (address.is_v4()) return address.to_v4().to_uint();
  const auto six = address.to_v6();
  if (six.is_v4_mapped()) return make_address_v4(boost::asio::ip::v4_mapped, six).to_uint();
  const auto bytes = six.to_bytes();
  uint64_t network = 0;
  for (size_t i = 0; i < 8; ++i) network = network << 8 | bytes[i];
  // Loopback's network is 0. No IPv4 address that connects is 0.
  return network;
}

// No IPv6 network begins with these bits, because 0000::/8 is reserved.
uint64_t Places::PeerOf(uid_t user) { return uint64_t{1} << 32 | user; }

}  // namespace firn::front
