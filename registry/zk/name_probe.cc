#include "registry/zk/name_probe.h"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <netdb.h>

namespace firn {
namespace {

bool Resolves(const std::string& name, int flags) {
  addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const bool resolves = getaddrinfo(name.c_str(), nullptr, &hints, &found) == 0;
  if (resolves) freeaddrinfo(found);
  return resolves;
}

// The hosts of "host:port,host:port" that are not addresses.
std::vector<std::string> NamesIn(std::string_view hosts) {
  std::vector<std::string> names;
  while (!hosts.empty()) {
    const std::string_view one = hosts.substr(0, hosts.find(','));
    hosts.remove_prefix(std::min(one.size() + 1, hosts.size()));
    std::string_view host = one.substr(0, one.rfind(':'));
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (!Resolves(std::string(host), AI_NUMERICHOST)) names.emplace_back(host);
  }
  return names;
}

}  // namespace

// What the thread that looks up keeps alive.
struct NameProbe::Shared {
  std::vector<std::string> names;

  std::mutex mutex;
  std::function<void()> wake;  // empty: nobody listens any more
  std::optional<bool> found;   // not yet asked for

  void Look() {
    const bool all = std::all_of(names.begin(), names.end(),
                                 [](const std::string& name) { return Resolves(name, 0); });
    const std::lock_guard lock(mutex);
    found = all;
    if (wake) wake();
  }
};

NameProbe::NameProbe(const std::string& hosts, std::function<void()> wake)
    : shared_(std::make_shared<Shared>()) {
  shared_->names = NamesIn(hosts);
  shared_->wake = std::move(wake);
}

NameProbe::~NameProbe() {
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = nullptr;
}

std::optional<bool> NameProbe::Ask() {
  if (shared_->names.empty()) return true;
  if (!under_way_) {
    try {
      std::thread([shared = shared_] { shared->Look(); }).detach();
    } catch (const std::system_error&) {
      return false;  // the system has no thread left
    }
    under_way_ = true;
    return std::nullopt;
  }
  const std::lock_guard lock(shared_->mutex);
  const std::optional<bool> found = std::exchange(shared_->found, std::nullopt);
  if (found) under_way_ = false;
  return found;
}

}  // namespace firn
