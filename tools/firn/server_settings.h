#pragma once

#include <string>

#include "common/base/status.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/servers/provider.h"

namespace firn {

// Reads and writes the operator's settings of servers in the registry: the weight, and whether the
// server is offline for clients. Blocks; owned by one thread.
class ServerSettings {
 public:
  explicit ServerSettings(BlockingCoordinator& registry) : registry_(registry) {}

  // Returns the settings of the server that clients reach at `address`, or the defaults if none
  // are stored. kCorrupt if the stored settings cannot be parsed.
  Result<Configurator> Read(const std::string& address);

  // Returns whether a server is registered at that address, or settings are stored for it.
  Result<bool> Knows(const std::string& address);

  // Applies `change` and returns the new settings. `change` runs again after a concurrent write, so
  // it must be repeatable. kConflict after kTriesMax attempts.
  template <typename Change>
  Result<Configurator> Edit(const std::string& address, Change change);

 private:
  struct Standing {
    Configurator word;
    bool there = false;
    int64_t version = 0;
  };
  static constexpr int kTriesMax = 5;

  Result<Standing> Find(const std::string& address);
  Status Put(const std::string& address, const Standing& standing, const Configurator& word);

  BlockingCoordinator& registry_;
};

template <typename Change>
Result<Configurator> ServerSettings::Edit(const std::string& address, Change change) {
  Status last;
  for (int i = 0; i < kTriesMax; ++i) {
    FIRN_ASSIGN(const Standing standing, Find(address));
    Configurator word = standing.word;
    change(word);
    if (word == standing.word) return word;
    last = Put(address, standing, word);
    if (last.ok()) return word;
    if (last.code() != Code::kConflict) break;
  }
  return last;
}

}  // namespace firn
