#include "server/plugins/rate.h"

#include <functional>
#include <thread>

namespace firn {

std::optional<Refusal> RatePlugin::After(const Request&, Runs& runs) {
  thread_local const size_t place =
      std::hash<std::thread::id>()(std::this_thread::get_id()) % kPlaces;
  places_[place].ids.fetch_add(runs.count(), std::memory_order_relaxed);
  return std::nullopt;
}

int64_t RatePlugin::ids() const {
  int64_t sum = 0;
  for (const Place& place : places_) sum += place.ids.load(std::memory_order_relaxed);
  return sum;
}

std::shared_ptr<RatePlugin> RateBoard::ForTag(const std::string& tag) {
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<RatePlugin>& plugin = entries_[tag].plugin;
  if (plugin == nullptr) plugin = std::make_shared<RatePlugin>();
  return plugin;
}

std::vector<TagRate> RateBoard::Read(BootMs now) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(entries_, [](const auto& item) { return item.second.plugin.use_count() == 1; });
  std::vector<TagRate> rates;
  rates.reserve(entries_.size());
  for (auto& [tag, entry] : entries_) {
    const int64_t ids = entry.plugin->ids();
    rates.push_back({tag, ids, Average(entry, {now, ids})});
  }
  return rates;
}

// Drops readings older than the window, but keeps one that is old enough to compare with. So a
// program that reads once a minute gets the minute's average.
double RateBoard::Average(Entry& entry, Reading reading) {
  std::deque<Reading>& kept = entry.readings;
  while (kept.size() > 1 && reading.at - kept.front().at > kWindow &&
         reading.at - kept[1].at >= kSpacing) {
    kept.pop_front();
  }
  const Reading from = kept.empty() ? reading : kept.front();
  if (kept.empty() || reading.at - kept.back().at >= kSpacing) kept.push_back(reading);
  const auto ms = static_cast<double>((reading.at - from.at).count());
  return ms > 0 ? static_cast<double>(reading.ids - from.ids) * 1000 / ms : 0;
}

}  // namespace firn
