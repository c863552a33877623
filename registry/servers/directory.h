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

// One server as the registry shows it at the moment.
struct DirectoryEntry {
  Provider provider;
  ProviderReport report;
  Configurator configurator;

  friend bool operator==(const DirectoryEntry&, const DirectoryEntry&) = default;
};

// All of them, in the order of their addresses, and why others were left out.
struct DirectorySnapshot {
  std::vector<DirectoryEntry> entries;
  std::vector<std::string> skipped;  // one sentence each

  friend bool operator==(const DirectorySnapshot&, const DirectorySnapshot&) = default;
};

// What the nodes of the two folders say, each by its name.
DirectorySnapshot ReadDirectory(const std::map<std::string, Node>& providers,
                                const std::map<std::string, Node>& configurators);

// The entries that count, in their order and each address once. A server that was started anew may
// stand there twice for a moment, until its dead session's node is gone: one that serves counts,
// and of two the later one.
std::vector<const DirectoryEntry*> OnePerAddress(const DirectorySnapshot& snapshot);

// Watches the providers and what operators say of them, and tells a snapshot whenever it differs
// from the one before. Once told, a registry that is away or answers nonsense changes nothing;
// whether an empty list is believed is the listener's decision.
//
// Owned by the control thread. May be destroyed at any time; later answers are dropped.
class Directory {
 public:
  using Told = std::function<void(const DirectorySnapshot&)>;

  Directory(Coordinator& coordinator, Entropy& entropy, Told told);

  // Does what is due. Call every 50 ms or so.
  void Tick(BootMs now);

 private:
  void Tell();

  const Told told_;
  std::optional<DirectorySnapshot> last_told_;
  FolderWatch providers_;
  FolderWatch configurators_;
};

}  // namespace firn
