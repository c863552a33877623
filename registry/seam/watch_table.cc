#include "registry/seam/watch_table.h"

#include <algorithm>

namespace firn {

WatchTable::Id WatchTable::IdOf(WatchKind kind, std::string_view path) {
  const auto found = ids_.find(KeyView{kind, path});
  if (found != ids_.end()) return found->second;
  Key key{kind, std::string(path)};
  entries_.emplace(++last_, Entry{key, {}});
  ids_.emplace(std::move(key), last_);
  return last_;
}

void WatchTable::Add(Id id, WatchKind kind, std::string_view path, Coordinator::Changed changed) {
  auto entry = entries_.find(id);
  if (entry == entries_.end()) {  // it has fired since the request
    Key key{kind, std::string(path)};
    ids_.emplace(key, id);
    entry = entries_.emplace(id, Entry{std::move(key), {}}).first;
  }
  Fired& waiting = entry->second.waiting;
  if (waiting.size() >= Coordinator::kWatchesMax) waiting.erase(waiting.begin());
  waiting.push_back(std::move(changed));
}

WatchTable::Fired WatchTable::Fire(WatchKind kind, std::string_view path) {
  if (entries_.empty()) return {};
  const auto id = ids_.find(KeyView{kind, path});
  return id == ids_.end() ? Fired() : Fire(id->second);
}

WatchTable::Fired WatchTable::Fire(Id id) {
  auto entry = entries_.extract(id);
  if (entry.empty()) return {};
  const auto current = ids_.find(entry.mapped().key);
  if (current != ids_.end() && current->second == id) ids_.erase(current);
  return std::move(entry.mapped().waiting);
}

WatchTable::Fired WatchTable::FireAll() {
  std::vector<Id> ids;
  for (const auto& [id, entry] : entries_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  Fired all;
  for (const Id id : ids) {
    for (Coordinator::Changed& changed : Fire(id)) all.push_back(std::move(changed));
  }
  return all;
}

}  // namespace firn
