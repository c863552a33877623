#include "registry/servers/directory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/cat.h"
#include "common/base/url_encoding.h"

namespace firn {
namespace {

// Parses a folder's nodes; adds a sentence to `skipped` for each one that does not parse.
template <typename Value, typename Parse>
std::vector<Value> ReadNodes(std::string_view folder, const std::map<std::string, Node>& nodes,
                             Parse parse, std::vector<std::string>& skipped) {
  std::vector<Value> values;
  for (const auto& [name, node] : nodes) {
    Result<Value> value = parse(name, node.data);
    if (value.ok()) {
      values.push_back(*std::move(value));
    } else {
      skipped.push_back(value.status().WithContext(Cat(folder, "/", name)).message());
    }
  }
  return values;
}

using Said = std::pair<std::string, Configurator>;

Result<Said> ReadConfigurator(const std::string& name, const std::string& data) {
  FIRN_ASSIGN(std::string address, UrlDecode(name));
  FIRN_ASSIGN(const Configurator configurator, ParseConfigurator(data));
  return Said(std::move(address), configurator);
}

Result<DirectoryEntry> ReadProvider(const std::string& name, const std::string& data) {
  DirectoryEntry entry;
  FIRN_ASSIGN(entry.provider, ParseProviderNodeName(name));
  FIRN_ASSIGN(entry.report, ParseReport(data));
  return entry;
}

bool CountsMore(const DirectoryEntry& a, const DirectoryEntry& b) {
  const auto rank = [](const DirectoryEntry& entry) {
    return std::pair(entry.report.phase == ServerPhase::kReady, entry.provider.since);
  };
  return rank(a) > rank(b);
}

}  // namespace

DirectorySnapshot ReadDirectory(const std::map<std::string, Node>& providers,
                                const std::map<std::string, Node>& configurators) {
  DirectorySnapshot snapshot;
  std::vector<std::string>& skipped = snapshot.skipped;
  snapshot.entries = ReadNodes<DirectoryEntry>(kProvidersPath, providers, ReadProvider, skipped);
  const auto said = ReadNodes<Said>(kConfiguratorsPath, configurators, ReadConfigurator, skipped);
  const std::map<std::string, Configurator> words(said.begin(), said.end());
  for (DirectoryEntry& entry : snapshot.entries) {
    const auto word = words.find(entry.provider.address);
    if (word != words.end()) entry.configurator = word->second;
  }
  std::sort(snapshot.entries.begin(), snapshot.entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) {
              return a.provider.address < b.provider.address;
            });
  return snapshot;
}

std::vector<const DirectoryEntry*> OnePerAddress(const DirectorySnapshot& snapshot) {
  std::vector<const DirectoryEntry*> counting;
  for (const DirectoryEntry& entry : snapshot.entries) {
    if (counting.empty() || counting.back()->provider.address != entry.provider.address) {
      counting.push_back(&entry);
    } else if (CountsMore(entry, *counting.back())) {
      counting.back() = &entry;
    }
  }
  return counting;
}

Directory::Directory(Coordinator& coordinator, Entropy& entropy, Told told)
    : told_(std::move(told)),
      providers_(coordinator, entropy, std::string(kProvidersPath), [this] { Tell(); }),
      configurators_(coordinator, entropy, std::string(kConfiguratorsPath), [this] { Tell(); }) {}

void Directory::Tick(BootMs now) {
  providers_.Tick(now);
  configurators_.Tick(now);
}

void Directory::Tell() {
  if (!providers_.whole() || !configurators_.whole()) return;
  DirectorySnapshot snapshot = ReadDirectory(providers_.nodes(), configurators_.nodes());
  if (snapshot == last_told_) return;
  last_told_ = std::move(snapshot);
  told_(*last_told_);
}

}  // namespace firn
