#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/coordinator.h"
#include "registry/servers/directory.h"

namespace firn {

// The list of servers, with a version that is comparable between servers, which report it to their
// clients.
//
//  1. Every second the registry's change numbers are read; the list is only read after a change.
//     There are no watches: a thousand servers that watched each other would read a million
//     nodes whenever each of them raises its bound.
//  2. The version is the highest change number (NodeStat::changed_zxid) of the two folders and of
//     the operators' settings. A server's report is set in its node, which changes none of these;
//     with a new phase its node is replaced, which does (provider_publisher.h).
//  3. A list is used only if no change number differs before and after the reads. So the list was
//     valid at one moment, and equal versions mean equal lists.
//  4. An unreachable registry, or one that shows no server, changes nothing. After a restore from a
//     backup the version is lower than before.
//
// Owned by the control thread. May be destroyed at any time; later answers are dropped.
class ServerRoll {
 public:
  static constexpr Milliseconds kReadEvery{1000};
  static constexpr Milliseconds kSettingEvery{20};  // times operators' settings, if that is more
  static constexpr size_t kNodesMax = 10'000;       // of a folder; further nodes are ignored
  static constexpr size_t kReadsMax = 500;          // requests at once

  // Called with each list that differs from the previous one, and with each new version.
  using Told = std::function<void(int64_t version, const DirectorySnapshot&)>;

  ServerRoll(Coordinator& coordinator, Told told)
      : async_registry_(coordinator), told_(std::move(told)) {}

  // Does everything that is due. Call it about every 50 ms.
  void Tick(BootMs now);

  // When the latest read began that confirmed the list reported last. Empty: none has yet.
  std::optional<BootMs> confirmed() const { return confirmed_; }

 private:
  // One of the two folders, with its nodes by name.
  struct Folder {
    int64_t changed = 0;
    std::map<std::string, Node> nodes{};
  };
  // The change numbers that make up a version.
  struct Marks {
    int64_t providers = 0;
    int64_t configurators = 0;
    std::map<std::string, int64_t> words{};  // by configurator

    Marks() = default;
    Marks(int64_t providers_changed, const Folder& said);
    int64_t Highest() const;
    std::vector<std::string> Words() const;
    friend bool operator==(const Marks&, const Marks&) = default;
  };
  struct Seen {
    BootMs asked_at;
    Marks marks{};
    std::optional<DirectorySnapshot> snapshot{};  // empty: as reported last
  };

  Task<Result<Seen>> ReadServers();
  Task<Result<Seen>> ReadAll();
  Task<Result<Marks>> ReadMarks(std::vector<std::string> words);
  Task<Result<Folder>> ReadFolder(std::string path);
  Task<Result<Folder>> ReadNodes(std::string path, std::vector<std::string> names);
  void Take(const Result<Seen>& seen);

  AsyncRegistry async_registry_;  // outlives the task
  const Told told_;
  std::optional<Marks> marks_;  // of the list reported last
  std::optional<BootMs> confirmed_;
  BootMs look_at_;
  Task<Result<Seen>> look_;
};

}  // namespace firn
