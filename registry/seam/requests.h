#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "registry/seam/coordinator.h"

namespace firn {

// What every coordinator checks about a request before it does anything, so that all refuse the
// same. Pure functions.

// Ok for "/" and for "/a/b": no empty part, no "." or "..", no control character, within
// Coordinator's limits.
Status CheckPath(std::string_view path);

// Ok for 1 to kWritesMax writes with good paths and not too much data. "/" cannot be ephemeral.
Status CheckWrites(const std::vector<Write>& writes);

// "/a" for "/a/b", "/" for "/a". "/" has no parent: empty.
std::string_view ParentOf(std::string_view path);

// "b" for "/a/b"; empty for "/".
std::string_view NameOf(std::string_view path);

// `path` with one more part: "/a/b" for ("/a", "b"), "/b" for ("/", "b").
std::string ChildPath(std::string_view path, std::string_view name);

// Makes the missing nodes above `path`, persistent and empty, "/" excepted: that node is the
// cluster's root and is made by those who know what it has to say. `done` gets kNotFound when there
// is something to make and no "/" to make it in, else the first failure; kConflict never.
// `coordinator` must outlive the answer.
void EnsureParents(Coordinator& coordinator, const std::string& path, Coordinator::SyncDone done);

}  // namespace firn
