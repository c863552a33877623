#include "common/net/name_lookup.h"

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include <netdb.h>

#include "common/base/no_signals.h"

namespace firn {

// The state shared with the threads. Outlives the NameLookup while a lookup is in progress.
struct NameLookup::Shared {
  struct Wanted {
    std::string name;
    Endpoint endpoint;
  };

  // Waits until a lookup may start. Returns false if no name is waiting.
  bool AwaitTurn(std::unique_lock<std::mutex>& lock) {
    while (!waiting.empty() && busy == kThreadsMax) {
      // If no lookup ends within hangs_after, all busy ones hang, because none starts meanwhile.
      const bool none_ended = changed.wait_for(lock, hangs_after) == std::cv_status::timeout;
      if (!none_ended || hanging + busy > kHangingMax) continue;
      hanging += std::exchange(busy, 0);
      ++epoch;
    }
    return !waiting.empty();
  }
  // Records the end of a lookup that began in epoch `began_in`.
  void Ended(uint64_t began_in) {
    --(began_in == epoch ? busy : hanging);
    changed.notify_all();
  }

  std::mutex mutex;
  Done done;  // under the mutex, like all members below; empty: stopped
  Resolve resolve;
  Milliseconds hangs_after;
  std::deque<Wanted> waiting;
  std::set<std::string> under_way;  // names that wait or are being looked up
  size_t busy = 0, hanging = 0;     // lookups in progress: of this epoch, and of earlier ones
  uint64_t epoch = 0;               // incremented when all busy lookups turn out to hang
  std::condition_variable changed;  // a lookup has ended, or Stop was called
  size_t threads = 0;
  bool spare = false;  // whether a thread waits for the next lookup
};

NameLookup::NameLookup(Done done, Resolve resolve, Milliseconds hangs_after)
    : shared_(std::make_shared<Shared>()) {
  shared_->done = std::move(done);
  shared_->resolve = std::move(resolve);
  shared_->hangs_after = hangs_after;
}

bool NameLookup::Start(const std::string& name, const Endpoint& endpoint) {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->done) return false;
  if (!shared_->under_way.insert(name).second) return true;
  shared_->waiting.push_back({name, endpoint});
  Spare(shared_);
  if (shared_->threads > 0) return true;
  shared_->waiting.clear();
  shared_->under_way.clear();
  return false;
}

void NameLookup::Spare(const std::shared_ptr<Shared>& shared) {
  if (shared->spare || shared->waiting.empty()) return;
  try {
    ThreadWithoutSignals([shared] { Work(shared); }).detach();
    shared->spare = true;
    ++shared->threads;
  } catch (const std::system_error&) {
    return;  // the existing threads will do the lookup
  }
}

void NameLookup::Work(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  bool spare = true;
  while (spare && shared->AwaitTurn(lock)) {
    const Shared::Wanted wanted = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    shared->spare = false;
    Spare(shared);
    ++shared->busy;
    const uint64_t epoch = shared->epoch;
    lock.unlock();
    const std::vector<Address> found = shared->resolve(wanted.endpoint);
    lock.lock();
    shared->Ended(epoch);
    shared->under_way.erase(wanted.name);
    if (shared->done) shared->done(wanted.name, found);
    spare = !std::exchange(shared->spare, true);
  }
  if (spare) shared->spare = false;
  --shared->threads;
}

void NameLookup::Stop() {
  const std::lock_guard lock(shared_->mutex);
  shared_->done = nullptr;
  shared_->waiting.clear();
  shared_->changed.notify_all();
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
