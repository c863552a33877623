#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/units.h"
#include "common/id/layout.h"

namespace firn {

// What a process needs to resume a lease of an earlier process of its server: one line beside the
// bound in the state folder. A value.
struct KeptLease {
  uint64_t number = 0;
  std::string id{};
  std::string name{};        // of the program
  std::string client{};      // see LeaseClient
  int64_t meta_version = 0;  // of the claim, as is its base
  WallMs base{};
  Tick until{};  // an end that was answered, not necessarily the latest
  // The last accepted turn, with its clock. Only a clean stop writes it: while the server runs,
  // each renewal changes it, and none waits for the disk.
  std::string turn{};
  WallMs turn_clock{};
  // A stop may have lowered R to the stored bound. So other claims may begin there, whatever R the
  // registry shows: it may have lost them.
  bool lowered = false;

  friend bool operator==(const KeptLease&, const KeptLease&) = default;
};

// Returns the empty text for a lease that a line cannot contain.
std::string FormatKeptLease(const KeptLease& lease);
// Returns nullopt for any other text.
std::optional<KeptLease> ParseKeptLease(std::string_view text);

}  // namespace firn
