#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "registry/seam/coordinator.h"

namespace firn {

// How the directory registry's files read. Pure functions; whatever the bytes, parsing ends in a
// value or in kCorrupt.
//
// A node is a folder with a file "node" in it, so that children are folders beside it:
//
//     /srv/firn/machines/0/7/node
//         firn-node version=3 created=5 modified=1700000000000 owner=0 bytes=24 check=... name=7
//         {"nonce":"...", ...}
//
// The first line is one line whatever the data are; the data follow as they are.

inline constexpr char kNodeFile[] = "node";

// Beside it: eight bytes, the number of the change that touched the node or its children last.
inline constexpr char kChangedFile[] = ".changed";

// The name of a child's folder: the child's name with '%' and what would be mistaken for something
// else ("node", a leading dot or tilde) percent-encoded; a name too long for a folder becomes
// "~" and its hash. `NameOfFolder` is empty for a hash: the node file has the name.
std::string FolderOfName(std::string_view name);
std::string NameOfFolder(std::string_view folder);

// Path of a node's folder below the registry's: "" for "/", "/machines/0" for "/machines/0".
std::string FolderOfPath(std::string_view path);

struct NodeFile {
  std::string name;
  Node node;
};
std::string RenderNode(std::string_view name, const Node& node);
Result<NodeFile> ParseNode(std::string_view bytes);

// What a multi leaves of a node: the bytes of its file, or nothing.
struct NodeChange {
  std::string path;
  std::optional<std::string> bytes;

  friend bool operator==(const NodeChange&, const NodeChange&) = default;
};
std::string RenderJournal(const std::vector<NodeChange>& changes);
Result<std::vector<NodeChange>> ParseJournal(std::string_view bytes);

}  // namespace firn
