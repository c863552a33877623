#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "registry/seam/coordinator.h"
#include "registry/seam/talk.h"
#include "registry/servers/directory.h"

namespace firn {

// Which servers there are, with a version that compares wherever it was read: for servers, which
// tell it to clients.
//
//  1. Every second the registry is asked when something was changed last. Only after a change all
//     is read. There are no watches: a thousand servers that watch each other would read a million
//     nodes whenever each of them moves its bound.
//  2. The version is the highest number of a change (NodeStat::changed_zxid) of the two folders and
//     of what operators say. What else a server reports of itself is set in its node and moves none
//     of these; with another phase its node is replaced, which does (provider_publisher.h).
//  3. What was read counts when no number has moved from before to after. So there was a moment at
//     which all of it was true, and two servers that tell one version tell one list.
//  4. A registry that is away, or shows no server, changes nothing. After data that were put back
//     the version is lower than before.
//
// Owned by the control thread. May be destroyed at any time; later answers are dropped.
class ServerRoll {
 public:
  static constexpr Milliseconds kLookEvery{1000};
  static constexpr Milliseconds kLookEveryWord{20};  // more than that where operators said much
  static constexpr size_t kNodesMax = 10'000;  // of a folder; what lies beyond is not looked at
  static constexpr size_t kReadsMax = 500;     // asked for at once

  // Called with each list that differs from the one before, and with each version.
  using Told = std::function<void(int64_t version, const DirectorySnapshot&)>;

  ServerRoll(Coordinator& coordinator, Told told) : talk_(coordinator), told_(std::move(told)) {}

  // Does what is due. Call every 50 ms or so.
  void Tick(BootMs now);

  // When the registry was asked last and said, in the end, what was told last. Empty: never yet.
  std::optional<BootMs> confirmed() const { return confirmed_; }

 private:
  // One of the two, with its nodes by name.
  struct Folder {
    int64_t changed = 0;
    std::map<std::string, Node> nodes{};
  };
  // The numbers that make a version.
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
    std::optional<DirectorySnapshot> snapshot{};  // empty: what was told last
  };

  Task<Result<Seen>> Look();
  Task<Result<Seen>> ReadAll();
  Task<Result<Marks>> ReadMarks(std::vector<std::string> words);
  Task<Result<Folder>> ReadFolder(std::string path);
  Task<Result<Folder>> ReadNodes(std::string path, std::vector<std::string> names);
  void Take(const Result<Seen>& seen);

  Talk talk_;  // outlives the task
  const Told told_;
  std::optional<Marks> marks_;  // of what was told last
  std::optional<BootMs> confirmed_;
  BootMs look_at_;
  Task<Result<Seen>> look_;
};

}  // namespace firn
