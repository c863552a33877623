#pragma once

#include "client/server_source.h"

namespace firn {

// The SourceOpener of list://host:port,host:port: a list that is given by hand and never changes.
// It names no cluster, so the first server that answers settles which one it is. kInvalid names
// every fault of the list; an address that stands in it twice is one.
Result<std::unique_ptr<ServerSource>> OpenListSource(const std::string& servers);

}  // namespace firn
