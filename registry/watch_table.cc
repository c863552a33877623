#include "registry/watch_table.h"

#include <algorithm>

namespace firn {

WatchTable::Entry& WatchTable::At(WatchKind kind, std::string_view path) {
  const auto found = entries_.find(KeyView{kind, path});
  if (found != entries_.end()) return found->second;
  Key key{kind, std::string(path)};
  keys_.emplace(++last_, key);
  return entries_.emplace(std::move(key), Entry{last_, {}}).first->second;
}

WatchTable::Id WatchTable::IdOf(WatchKind kind, std::string_view path) { return At(kind, path).id; }

void WatchTable::Add(WatchKind kind, std::string_view path, Coordinator::Changed changed) {
  Fired& waiting = At(kind, path).waiting;
  if (waiting.size() >= Coordinator::kWatchesMax) waiting.erase(waiting.begin());
  waiting.push_back(std::move(changed));
}

WatchTable::Fired WatchTable::Take(Entries::iterator entry) {
  if (entry == entries_.end()) return {};
  Fired fired = std::move(entry->second.waiting);
  keys_.erase(entry->second.id);
  entries_.erase(entry);
  return fired;
}

WatchTable::Fired WatchTable::Fire(WatchKind kind, std::string_view path) {
  if (entries_.empty()) return {};
  return Take(entries_.find(KeyView{kind, path}));
}

WatchTable::Fired WatchTable::Fire(Id id) {
  const auto key = keys_.find(id);
  return key == keys_.end() ? Fired() : Take(entries_.find(key->second));
}

WatchTable::Fired WatchTable::FireAll() {
  Fired all;
  for (const auto& [id, key] : Waiting()) {
    for (Coordinator::Changed& changed : Fire(id)) all.push_back(std::move(changed));
  }
  return all;
}

std::vector<std::pair<WatchTable::Id, WatchTable::Key>> WatchTable::Waiting() const {
  std::vector<std::pair<Id, Key>> waiting(keys_.begin(), keys_.end());
  std::sort(waiting.begin(), waiting.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return waiting;
}

}  // namespace firn
