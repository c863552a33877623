#pragma once

#include <string>
#include <string_view>

#include "client/server_source.h"
#include "common/base/status.h"

namespace firn {

// The file format of a list of servers, with its registry and cluster.
//
//     firn-servers 1
//     registry zk%3A%2F%2Fzk1%3A2181%2Ffirn%2Fshop          source of the list
//     cluster 6f1b0c7e-1f3a-4c55-9d0e-0123456789ab          uuid, may be empty
//     layout firn                                           may be empty
//     server 10.0.0.7%3A7609 0 100 enabled serving          address, rack, weight, ...
//     server 10.0.0.8%3A7609 0 100 enabled serving tls      a server with TLS
//     check 1c291ca3                                        CRC-32 of all lines before
//
// A value and its text form; thread-compatible.
struct KeptList {
  std::string registry;
  ServerList list;

  friend bool operator==(const KeptList&, const KeptList&) = default;
};

inline constexpr size_t kListTextBytesMax = size_t{1} << 20;

// Omits the cluster's name, servers' incarnations, `from_cache` and `fixed`.
std::string FormatList(const KeptList& kept);

// Parses the text of FormatList, and sets `from_cache`. kCorrupt with a reason for any other text:
// a truncated file, a changed bit, an extra line, more than kServersMax servers.
Result<KeptList> ParseList(std::string_view text);

}  // namespace firn
