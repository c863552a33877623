#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/server_source.h"

namespace firn {

// The SourceOpener of list://host:port,host:port: a fixed list. It does not name the cluster, so
// the first server that answers determines it. kInvalid names every fault of the list, including
// duplicate addresses.
Result<std::unique_ptr<ServerSource>> OpenListSource(const std::string& servers);

// Parses the servers in "host:port,host:port"; kInvalid as above.
Result<std::vector<KnownServer>> ParseServers(std::string_view text);

}  // namespace firn
