#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/entropy.h"
#include "common/units.h"
#include "registry/callback_guard.h"
#include "registry/coordinator.h"
#include "registry/provider.h"

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

// Watches the providers and what operators say of them.
//
//  1. A notice makes only what it names be read again; all is read again every 30 to 60 s, since a
//     watch may be lost without a word.
//  2. Notices are merged for 100 ms, so that a rolling restart is not a storm of snapshots.
//  3. A snapshot is told when everything that was asked for has been answered, and only if it
//     differs from the last one told. A read that fails leaves the last good data in place.
//
// Owned by the control thread. May be destroyed at any time; later answers are dropped.
class Directory {
 public:
  using Told = std::function<void(const DirectorySnapshot&)>;

  static constexpr size_t kServersMax = 4096;
  static constexpr Milliseconds kMerge{100};
  static constexpr Milliseconds kRereadMin{30'000};

  Directory(Coordinator& coordinator, Entropy& entropy, Told told);

  // Does what is due. Call every 50 ms or so.
  void Tick(BootMs now);

 private:
  // A folder of nodes that are each read and watched: providers, configurators.
  struct Folder {
    struct Child {
      std::string data;
      bool known = false;  // data has been read at least once
      bool stale = true;
    };
    std::string path;
    std::map<std::string, Child> children;
    bool listed = false;
    bool stale = true;
  };

  void Refresh(Folder& folder);
  void OnListed(Folder& folder, const Result<std::vector<std::string>>& names);
  void ReadChild(Folder& folder, const std::string& name);
  void OnRead(Folder& folder, const std::string& name, const Result<Node>& node);
  void MarkStale(bool& stale);
  void FailedRead(bool& stale);
  void TellIfComplete();
  bool Complete() const;
  DirectorySnapshot Build() const;

  Coordinator& coordinator_;
  Entropy& entropy_;
  Told told_;

  Folder providers_;
  Folder configurators_;
  int in_flight_ = 0;
  int64_t session_ = 0;
  BootMs now_;
  BootMs refresh_at_;
  BootMs reread_at_;
  std::optional<DirectorySnapshot> last_told_;

  CallbackGuard guard_;
};

}  // namespace firn
