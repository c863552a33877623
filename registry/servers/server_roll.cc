#include "registry/servers/server_roll.h"

#include <algorithm>

#include "registry/seam/requests.h"

namespace firn {

ServerRoll::Marks::Marks(int64_t providers_changed, const Folder& said)
    : providers(providers_changed), configurators(said.changed) {
  for (const auto& [name, node] : said.nodes) words[name] = node.stat.changed_zxid;
}

int64_t ServerRoll::Marks::Highest() const {
  int64_t highest = std::max<int64_t>({1, providers, configurators});  // 0: nothing was read yet
  for (const auto& [name, number] : words) highest = std::max(highest, number);
  return highest;
}

std::vector<std::string> ServerRoll::Marks::Words() const {
  std::vector<std::string> names;
  for (const auto& [name, number] : words) names.push_back(name);
  return names;
}

void ServerRoll::Tick(BootMs now) {
  async_registry_.Tick(now);
  if (look_.done()) Take(look_.Take());
  if (look_.busy() || async_registry_.session() == 0 || now < look_at_) return;
  const auto words = static_cast<int64_t>(marks_ ? marks_->words.size() : 0);
  look_at_ = now + std::max(kReadEvery, kSettingEvery * words);
  look_ = ReadServers();
  async_registry_.Start(look_);
}

void ServerRoll::Take(const Result<Seen>& seen) {
  if (!seen.ok()) return;
  if (seen->snapshot && seen->snapshot->entries.empty()) return;
  confirmed_ = seen->asked_at;
  if (!seen->snapshot) return;
  marks_ = seen->marks;
  told_(marks_->Highest(), *seen->snapshot);
}

Task<Result<ServerRoll::Seen>> ServerRoll::ReadServers() {
  const int64_t session = async_registry_.session();
  Seen seen{async_registry_.now()};
  std::vector<std::string> words;
  if (marks_) {
    words = marks_->Words();
    Result<Marks> now = co_await ReadMarks(words);
    if (!now.ok()) co_return now.status();
    if (*now == *marks_) co_return seen;
  }
  Result<Seen> read = co_await ReadAll();
  if (!read.ok()) co_return read;
  seen = *std::move(read);
  seen.asked_at = async_registry_.now();
  words = seen.marks.Words();
  Result<Marks> after = co_await ReadMarks(words);
  if (!after.ok()) co_return after.status();
  // The ZooKeeper server of another session may be behind the previous one.
  if (async_registry_.session() != session) co_return Unavailable("the session has ended");
  if (*after != seen.marks) co_return Conflict("the list of servers changed while it was read");
  co_return seen;
}

Task<Result<ServerRoll::Seen>> ServerRoll::ReadAll() {
  const std::string servers_path(kProvidersPath), words_path(kConfiguratorsPath);
  Result<Folder> servers = co_await ReadFolder(servers_path);
  if (!servers.ok()) co_return servers.status();
  Result<Folder> words = co_await ReadFolder(words_path);
  if (!words.ok()) co_return words.status();
  Seen seen{async_registry_.now()};
  seen.marks = Marks(servers->changed, *words);
  seen.snapshot = ReadDirectory(servers->nodes, words->nodes);
  co_return seen;
}

Task<Result<ServerRoll::Marks>> ServerRoll::ReadMarks(std::vector<std::string> words) {
  const std::string servers_path(kProvidersPath), words_path(kConfiguratorsPath);
  const std::vector<std::string> none;
  Result<Folder> servers = co_await ReadNodes(servers_path, none);
  if (!servers.ok()) co_return servers.status();
  Result<Folder> said = co_await ReadNodes(words_path, words);
  if (!said.ok()) co_return said.status();
  co_return Marks(servers->changed, *said);
}

Task<Result<ServerRoll::Folder>> ServerRoll::ReadFolder(std::string path) {
  const std::vector<std::string> none;
  // Read before the names: a change in between then counts as not seen.
  Result<Folder> before = co_await ReadNodes(path, none);
  if (!before.ok()) co_return before;
  Result<std::vector<std::string>> names = co_await async_registry_.List(path);
  if (names.code() == Code::kNotFound) co_return Folder();
  if (!names.ok()) co_return names.status();
  std::vector<std::string> some = *std::move(names);
  if (some.size() > kNodesMax) some.resize(kNodesMax);
  Result<Folder> folder = co_await ReadNodes(path, some);
  if (folder.ok()) folder->changed = before->changed;
  co_return folder;
}

// Returns the folder's own node and its existing children. An unreadable child hides only itself. A
// missing folder counts as never changed.
Task<Result<ServerRoll::Folder>> ServerRoll::ReadNodes(std::string path,
                                                       std::vector<std::string> names) {
  Folder folder;
  size_t next = 0;
  std::vector<std::string> paths{path};
  while (!paths.empty()) {
    Readings readings = co_await async_registry_.ReadAll(paths);
    for (Reading& reading : readings) {
      const std::string& read = paths[reading.which];
      const Code code = reading.node.code();
      if (code == Code::kNotFound) continue;
      if (read == path && reading.node.ok()) {
        folder.changed = reading.node->stat.changed_zxid;
      } else if (reading.node.ok() || code == Code::kCorrupt) {
        folder.nodes[std::string(NameOf(read))] = std::move(reading.node).value_or(Node());
      } else {
        co_return reading.node.status();
      }
    }
    const size_t end = std::min(names.size(), next + kReadsMax);
    paths.clear();
    for (; next < end; ++next) paths.push_back(ChildPath(path, names[next]));
  }
  co_return folder;
}

}  // namespace firn
