#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/nonce.h"

namespace firn {

// The nodes of owners, as values and as text:
//
//   /owners/beats/<tenure>           {"address":"10.1.2.3:7609","secret":"<32 hex>",
//                                     "word":"<32 hex>","window_ms":3000,"ended":false}
//   /owners/beats/<tenure>/alive     empty; it exists until the tenure has ended
//   /owners/partitions/<partition>   {"tenure":"<32 hex>","address":"10.1.2.3:7609",
//                                     "change":"<32 hex>"}
//   /owners/partitions/<partition>/<change>     empty; it exists while the partition names it
//
// Versions and creations recur in a registry that has gone back in time. The names of tenures and
// changes never do, and a multi can check whether their nodes exist.
//
// Readers are strict, and hand members of later versions on, as those of registry/cluster do.

inline constexpr const char* kOwnersPath = "/owners";
inline constexpr const char* kBeatsPath = "/owners/beats";
inline constexpr const char* kPartitionsPath = "/owners/partitions";
std::string BeatPath(const Nonce& tenure);
std::string AlivePath(const Nonce& tenure);
std::string PartitionPath(size_t partition);
std::string ChangePath(size_t partition, const Nonce& change);

// A server's sign of life, which it renews. A tenure is the time from the creation of its beat to
// the end of its last renewal's window, or to `ended`.
struct Beat {
  static constexpr Milliseconds kWindowMin{1'000}, kWindow{3'000}, kWindowMax{3'000};

  std::string address{};  // for other servers
  Nonce secret{};         // proves that a server can read the registry; never shown
  Nonce word{};           // drawn for each version that the server writes
  Milliseconds window = kWindow;
  bool ended = false;  // never renewed again
  std::string others{};

  friend bool operator==(const Beat&, const Beat&) = default;
};

// The owner of one partition. Changes only when the partition gets another owner.
struct PartitionOwner {
  Nonce tenure{};  // zero: none
  std::string address{};
  Nonce change{};  // drawn for each write of this node; zero: never owned
  std::string others{};

  friend bool operator==(const PartitionOwner&, const PartitionOwner&) = default;
};

std::string FormatBeat(const Beat& beat);
std::string FormatPartitionOwner(const PartitionOwner& owner);

Result<Beat> ParseBeat(std::string_view json);
Result<PartitionOwner> ParsePartitionOwner(std::string_view json);

}  // namespace firn
