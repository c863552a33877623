#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/net/address.h"

namespace firn::client {

// The addresses of one server, and which of them accepted connections. A value, thread-compatible.
class AddressBook {
 public:
  bool empty() const { return good_.empty() && bad_.empty(); }

  // Replaces the addresses by `found`, to which the name resolved, and keeps the order of the
  // remaining ones. Returns true if they have changed.
  bool Learn(const std::vector<Address>& found) {
    const auto gone = [&](const Address& one) { return !Contains(found, one); };
    size_t forgotten = std::erase_if(good_, gone);
    forgotten += std::erase_if(bad_, gone);
    const size_t before = good_.size();
    for (const Address& one : found) {
      if (!Contains(good_, one) && !Contains(bad_, one)) good_.push_back(one);
    }
    return forgotten > 0 || good_.size() != before;
  }

  void Led(const Address& address) { Move(address, bad_, good_); }
  void LedNowhere(const Address& address) { Move(address, good_, bad_); }

  // Returns the addresses in the order in which to try them. The reachable ones take turns at being
  // first, which spreads connections over them; unreachable ones come last.
  std::vector<Address> InTurn() {
    if (!good_.empty()) std::rotate(good_.begin(), good_.begin() + 1, good_.end());
    std::vector<Address> order = good_;
    order.insert(order.end(), bad_.begin(), bad_.end());
    return order;
  }

 private:
  static bool Contains(const std::vector<Address>& all, const Address& one) {
    return std::ranges::find(all, one) != all.end();
  }
  static void Move(const Address& address, std::vector<Address>& from, std::vector<Address>& to) {
    if (std::erase(from, address) > 0) to.push_back(address);
  }

  std::vector<Address> good_, bad_;
};

}  // namespace firn::client
