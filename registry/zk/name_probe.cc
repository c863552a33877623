#include "registry/zk/name_probe.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/log/log.h"
#include "common/time/clock.h"

namespace firn {
namespace {

constexpr Milliseconds kTellEvery{30'000};

// The hosts of "host:port,host:port" that are not addresses.
std::set<std::string> NamesIn(std::string_view hosts) {
  std::set<std::string> names;
  while (!hosts.empty()) {
    const std::string_view one = hosts.substr(0, hosts.find(','));
    hosts.remove_prefix(std::min(one.size() + 1, hosts.size()));
    std::string_view host = one.substr(0, one.rfind(':'));
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (!NumericAddress({std::string(host), 0}).known()) names.emplace(host);
  }
  return names;
}

}  // namespace

NameProbe::NameProbe(const std::string& hosts, std::function<void()> wake)
    : names_(NamesIn(hosts)),
      wake_(std::move(wake)),
      lookup_([this](const std::string& name, const std::vector<Address>& found) {
        if (found.empty()) LogUnknownName(name);
        OnLookedUp(!found.empty());
      }) {}

// This log line is the only sign of the failure besides the missing session.
void NameProbe::LogUnknownName(const std::string& name) {
  const BootMs now = SystemClock().Boot();
  {
    const std::lock_guard lock(mutex_);
    if (told_at_ && now - *told_at_ < kTellEvery) return;
    told_at_ = now;
  }
  LogWarning("name_unresolved").With("name", name)
      << "the registry's server '" << name << "' cannot be resolved: the name has no address";
}

void NameProbe::OnLookedUp(bool found) {
  {
    const std::lock_guard lock(mutex_);
    all_found_ = all_found_ && found;
    if (--awaited_ > 0) return;
  }
  wake_();
}

std::optional<bool> NameProbe::Ask() {
  if (names_.empty()) return true;
  if (under_way_) {
    const std::lock_guard lock(mutex_);
    if (awaited_ > 0) return std::nullopt;
    under_way_ = false;
    return all_found_;
  }
  {
    const std::lock_guard lock(mutex_);
    awaited_ = names_.size();
    all_found_ = true;
  }
  for (const std::string& name : names_) {
    if (!lookup_.Start(name, {name, 0})) return false;  // the system has no thread left
  }
  under_way_ = true;
  return std::nullopt;
}

}  // namespace firn
