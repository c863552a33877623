#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/dir/folder_watch.h"
#include "registry/seam/coordinator.h"
#include "registry/servers/provider.h"

namespace firn {

// One server as the registry currently shows it.
struct DirectoryEntry {
  Provider provider;
  ProviderReport report;
  Configurator configurator;

  friend bool operator==(const DirectoryEntry&, const DirectoryEntry&) = default;
};

// All servers, in the order of their addresses, and why others were skipped.
struct DirectorySnapshot {
  std::vector<DirectoryEntry> entries;
  std::vector<std::string> skipped;  // one sentence each

  friend bool operator==(const DirectorySnapshot&, const DirectorySnapshot&) = default;
};

// Parses the nodes of the two folders, by name.
DirectorySnapshot ReadDirectory(const std::map<std::string, Node>& providers,
                                const std::map<std::string, Node>& configurators);

// Returns one entry for each address, in their order. A restarted server may be listed twice until
// the node of its dead session disappears. Prefers a serving entry, then the later one.
std::vector<const DirectoryEntry*> OnePerAddress(const DirectorySnapshot& snapshot);

// Watches the providers and the operators' settings, and reports each snapshot that differs from
// the previous one. After the first report, an unreachable registry or an invalid answer changes
// nothing; the listener decides whether it believes an empty list.
//
// Owned by the control thread. May be destroyed at any time; later answers are dropped.
class Directory {
 public:
  using Told = std::function<void(const DirectorySnapshot&)>;

  Directory(Coordinator& coordinator, Entropy& entropy, Told told);

  // Does everything that is due. Call it about every 50 ms.
  void Tick(BootMs now);

 private:
  void Tell();

  const Told told_;
  std::optional<DirectorySnapshot> last_told_;
  FolderWatch providers_;
  FolderWatch configurators_;
};

}  // namespace firn
