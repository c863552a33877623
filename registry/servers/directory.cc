#include "registry/servers/directory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/url_encoding.h"

namespace firn {
namespace {

// The values of a folder's nodes that read well; for each other one, a sentence in `skipped`.
template <typename Value, typename Parse>
std::vector<Value> ReadNodes(const FolderWatch& folder, Parse parse,
                             std::vector<std::string>& skipped) {
  std::vector<Value> values;
  for (const auto& [name, node] : folder.nodes()) {
    Result<Value> value = parse(name, node.data);
    if (value.ok()) {
      values.push_back(*std::move(value));
    } else {
      skipped.push_back(value.status().WithContext(folder.path() + "/" + name).message());
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

}  // namespace

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
  DirectorySnapshot snapshot = Build();
  if (snapshot == last_told_) return;
  last_told_ = std::move(snapshot);
  told_(*last_told_);
}

DirectorySnapshot Directory::Build() const {
  DirectorySnapshot snapshot;
  snapshot.entries = ReadNodes<DirectoryEntry>(providers_, ReadProvider, snapshot.skipped);
  const auto said = ReadNodes<Said>(configurators_, ReadConfigurator, snapshot.skipped);
  const std::map<std::string, Configurator> configurators(said.begin(), said.end());
  for (DirectoryEntry& entry : snapshot.entries) {
    const auto word = configurators.find(entry.provider.address);
    if (word != configurators.end()) entry.configurator = word->second;
  }
  std::sort(snapshot.entries.begin(), snapshot.entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) {
              return a.provider.address < b.provider.address;
            });
  return snapshot;
}

}  // namespace firn
