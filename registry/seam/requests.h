#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "registry/seam/coordinator.h"

namespace firn {

// Checks of requests that all coordinators share, so that all refuse the same. Pure functions.

// Ok for "/" and for "/a/b": no empty part, no "." or "..", no control character, within
// Coordinator's limits.
Status CheckPath(std::string_view path);

// Ok for 1 to kWritesMax writes with good paths and not too much data. "/" cannot be ephemeral.
Status CheckWrites(const std::vector<Write>& writes);

// "/a" for "/a/b", "/" for "/a". "/" has no parent: empty.
std::string_view ParentOf(std::string_view path);

// "b" for "/a/b"; empty for "/".
std::string_view NameOf(std::string_view path);

// Appends a part to `path`: "/a/b" for ("/a", "b"), "/b" for ("/", "b").
std::string ChildPath(std::string_view path, std::string_view name);

// Creates the missing nodes above `path`, persistent and empty, but never "/", the cluster's root
// node, which is not empty. `done` gets kNotFound if a node is missing and "/" does not exist,
// otherwise the first failure; never kConflict. `coordinator` must outlive the answer.
void EnsureParents(Coordinator& coordinator, const std::string& path, Coordinator::SyncDone done);

}  // namespace firn
