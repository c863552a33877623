#include "server/front/net/places.h"

namespace firn::front {

std::optional<Places::Place> Places::Take(uint64_t peer) {
  const std::lock_guard lock(mutex_);
  size_t& count = of_peer_[peer];
  if (count >= limits_.connections_per_peer_max) return std::nullopt;
  ++count;
  ++taken_;
  return Place(*this, peer);
}

bool Places::overfull() const {
  const std::lock_guard lock(mutex_);
  return taken_ > limits_.connections_max;
}

void Places::GiveBack(uint64_t peer) {
  const std::lock_guard lock(mutex_);
  --taken_;
  const auto found = of_peer_.find(peer);
  if (--found->second == 0) of_peer_.erase(found);
}

uint64_t Places::PeerAt(const boost::asio::ip::address& address) {
  if (address.is_v4()) return address.to_v4().to_uint();
  const auto six = address.to_v6();
  if (six.is_v4_mapped()) return make_address_v4(boost::asio::ip::v4_mapped, six).to_uint();
  const auto bytes = six.to_bytes();
  uint64_t network = 0;
  for (size_t i = 0; i < 8; ++i) network = network << 8 | bytes[i];
  // Loopback's network is 0, as is no IPv4 address's that calls.
  return network;
}

// No IPv6 network begins with these bits, because 0000::/8 is reserved.
uint64_t Places::PeerOf(uid_t user) { return uint64_t{1} << 32 | user; }

}  // namespace firn::front
