#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/server_source.h"

namespace firn {

// The SourceOpener of list://host:port,host:port: a list that is given by hand and never changes.
// It names no cluster, so the first server that answers settles which one it is. kInvalid names
// every fault of the list; an address that stands in it twice is one.
Result<std::unique_ptr<ServerSource>> OpenListSource(const std::string& servers);

// The servers of "host:port,host:port"; kInvalid as above.
Result<std::vector<KnownServer>> ParseServers(std::string_view text);

}  // namespace firn
