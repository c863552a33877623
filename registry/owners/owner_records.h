#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/nonce.h"

namespace firn {

// The nodes of owners, as values and as text:
//
//   /owners/beats/<tenure>           {"address":"10.1.2.3:7609","secret":"<32 hex>",
//                                     "word":"<32 hex>","window_ms":3000,"ended":false,
//                                     "unreachable":"10.1.2.4:7609,10.1.2.5:7609","tls":true,
//                                     "leaving":true,"young":true}
//   /owners/beats/<tenure>/alive     empty; exists until the tenure has ended
//   /owners/partitions/<partition>   {"tenure":"<32 hex>","address":"10.1.2.3:7609",
//                                     "change":"<32 hex>"}
//   /owners/partitions/<partition>/<change>     empty; exists while the partition names it
//
// In a registry that went back in time, versions and creations recur. The random names of tenures
// and changes do not, and a multi can check whether their nodes exist.
//
// Readers are strict. They preserve members of later versions, as in registry/cluster.

inline constexpr const char* kOwnersPath = "/owners";
inline constexpr const char* kBeatsPath = "/owners/beats";
inline constexpr const char* kPartitionsPath = "/owners/partitions";
std::string BeatPath(const Nonce& tenure);
std::string AlivePath(const Nonce& tenure);
std::string PartitionPath(size_t partition);
std::string ChangePath(size_t partition, const Nonce& change);

// The heartbeat of a tenure. The tenure lasts from the creation of its beat to the end of the last
// renewal's window, or to `ended`.
struct Beat {
  static constexpr Milliseconds kWindowMin{1'000}, kWindow{3'000}, kWindowMax{3'000};
  static constexpr Milliseconds kWindowReadMax{30'000};  // of a later version
  static constexpr size_t kUnreachableBytesMax = 2048;

  std::string address{};  // for other servers
  Nonce secret{};         // proves that a server can read the registry; never shown
  Nonce word{};           // random, new in each version
  Milliseconds window = kWindow;
  bool ended = false;  // never renewed again
  // Addresses that its server cannot reach, separated by commas; the last one may be cut off.
  std::string unreachable{};
  // Whether connections to the address use TLS; empty: its server is of an earlier version.
  std::optional<bool> tls{};
  bool leaving = false;  // its server will stop; only written if it is true
  bool young = false;    // its server may not take partitions yet; only written if it is true
  std::string others{};

  friend bool operator==(const Beat&, const Beat&) = default;
};

// The owner of one partition. Changes only when the partition gets another owner.
struct PartitionOwner {
  Nonce tenure{};  // zero: none
  std::string address{};
  Nonce change{};  // random, new in each write of this node; zero: never owned
  std::string others{};

  friend bool operator==(const PartitionOwner&, const PartitionOwner&) = default;
};

// Returns whether a list such as Beat::unreachable contains the address.
bool Lists(std::string_view addresses, std::string_view address);

std::string FormatBeat(const Beat& beat);
std::string FormatPartitionOwner(const PartitionOwner& owner);

Result<Beat> ParseBeat(std::string_view json);
Result<PartitionOwner> ParsePartitionOwner(std::string_view json);

}  // namespace firn
