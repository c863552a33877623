#include "common/net/name_lookup.h"

#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include <netdb.h>

namespace firn {

// Outlives the object for as long as a lookup is under way.
struct NameLookup::Shared {
  struct Wanted {
    std::string name;
    Endpoint endpoint;
  };

  std::mutex mutex;
  Told told;  // under the mutex, as all below; empty: stopped
  Resolve resolve;
  std::deque<Wanted> waiting;
  std::set<std::string> under_way;  // names that wait, or are being looked up
  size_t threads = 0;
};

NameLookup::NameLookup(Told told, Resolve resolve) : shared_(std::make_shared<Shared>()) {
  shared_->told = std::move(told);
  shared_->resolve = std::move(resolve);
}

bool NameLookup::Start(const std::string& name, const Endpoint& endpoint) {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->told) return false;
  if (!shared_->under_way.insert(name).second) return true;
  shared_->waiting.push_back({name, endpoint});
  if (shared_->threads == kThreadsMax) return true;
  try {
    std::thread([shared = shared_] { Work(shared); }).detach();
    ++shared_->threads;
  } catch (const std::system_error&) {
    if (shared_->threads > 0) return true;  // those get to it
    shared_->waiting.clear();
    shared_->under_way.clear();
    return false;
  }
  return true;
}

void NameLookup::Work(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  while (!shared->waiting.empty()) {
    const Shared::Wanted wanted = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    lock.unlock();
    const std::vector<Address> found = shared->resolve(wanted.endpoint);
    lock.lock();
    shared->under_way.erase(wanted.name);
    if (shared->told) shared->told(wanted.name, found);
  }
  --shared->threads;
}

void NameLookup::Stop() {
  const std::lock_guard lock(shared_->mutex);
  shared_->told = nullptr;
  shared_->waiting.clear();
}

std::vector<Address> NameLookup::SystemAddresses(const Endpoint& endpoint) {
  constexpr size_t kAddressesMax = 16;
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* first = nullptr;
  const std::string port = std::to_string(endpoint.port);
  std::vector<Address> found;
  if (getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &first) != 0) return found;
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) {
    Address address;
    if (one->ai_addrlen > sizeof address.storage || found.size() == kAddressesMax) continue;
    address.length = one->ai_addrlen;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    found.push_back(address);
  }
  freeaddrinfo(first);
  return found;
}

}  // namespace firn
