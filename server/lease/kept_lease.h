#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/units.h"
#include "common/id/layout.h"

namespace firn {

// A lease as stored in the state folder, one line beside its bound. The server's next process
// resumes the lease from it. A value.
struct KeptLease {
  uint64_t number = 0;
  std::string id{};
  std::string name{};        // of the program
  std::string client{};      // see LeaseClient
  int64_t meta_version = 0;  // of the claim, as is its base
  WallMs base{};
  Tick until{};  // an end that the server returned, not necessarily the latest
  // The last accepted turn, with its clock. Only a clean stop writes it: each renewal changes it,
  // and renewals do not wait for the disk.
  std::string turn{};
  WallMs turn_clock{};
  // A stop may have lowered R to the stored bound. Then another claim may have begun there, even if
  // the registry shows the higher R: it may have lost the lowered bound and that claim.
  bool lowered = false;

  friend bool operator==(const KeptLease&, const KeptLease&) = default;
};

// Returns an empty string if the lease does not fit into one line.
std::string FormatKeptLease(const KeptLease& lease);
// Returns nullopt if `text` is malformed.
std::optional<KeptLease> ParseKeptLease(std::string_view text);

}  // namespace firn
