#pragma once

#include <string>

#include "common/base/status.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/servers/provider.h"

namespace firn {

// What operators say of servers, as it stands in the registry: weight, and whether clients shall
// stay away. Blocks; owned by one thread.
class ServerWords {
 public:
  explicit ServerWords(BlockingCoordinator& registry) : registry_(registry) {}

  // Of the server that clients connect to at `address`; the default word where nothing stands.
  // kCorrupt: what stands is not one.
  Result<Configurator> Read(const std::string& address);

  // Whether a server of that address lives, or a word on it stands already.
  Result<bool> Knows(const std::string& address);

  // Changes it by `change`, which must be a plain edit: it is repeated when somebody else was
  // first. The new word; kConflict after five times.
  template <typename Change>
  Result<Configurator> Edit(const std::string& address, Change change);

 private:
  struct Standing {
    Configurator word;
    bool there = false;
    int64_t version = 0;
  };
  static constexpr int kTriesMax = 5;

  Result<Standing> Look(const std::string& address);
  Status Put(const std::string& address, const Standing& standing, const Configurator& word);

  BlockingCoordinator& registry_;
};

template <typename Change>
Result<Configurator> ServerWords::Edit(const std::string& address, Change change) {
  Status last;
  for (int i = 0; i < kTriesMax; ++i) {
    FIRN_ASSIGN(const Standing standing, Look(address));
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
