#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "registry/seam/coordinator.h"

namespace firn {

// The format of the directory registry's files. Pure functions; parsing returns a value or kCorrupt
// for any bytes.
//
// A node is a folder with a file "node" in it; its children are folders beside that file:
//
//     /srv/firn/machines/0/7/node
//         firn-node version=3 created=5 modified=1700000000000 owner=0 bytes=24 check=... name=7
//         {"nonce":"...", ...}
//
// The head is always one line; the data follow unchanged.

inline constexpr char kNodeFile[] = "node";

// Beside it: eight bytes, the number of the last change to the node or its children.
inline constexpr char kChangedFile[] = ".changed";

// The name of a child's folder: the child's name, in which '%' and ambiguous parts ("node", a
// leading dot or tilde) are percent-encoded. A name too long for a folder becomes "~" and its hash.
// `NameOfFolder` is empty for a hash: the node file has the name.
std::string FolderOfName(std::string_view name);
std::string NameOfFolder(std::string_view folder);

// The path of a node's folder below the registry's: "" for "/", "/machines/0" for "/machines/0".
std::string FolderOfPath(std::string_view path);

struct NodeFile {
  std::string name;
  Node node;
};
std::string RenderNode(std::string_view name, const Node& node);
Result<NodeFile> ParseNode(std::string_view bytes);

// The effect of a multi on a node: the new bytes of its file, or its removal.
struct NodeChange {
  std::string path;
  std::optional<std::string> bytes;

  friend bool operator==(const NodeChange&, const NodeChange&) = default;
};
std::string RenderJournal(const std::vector<NodeChange>& changes);
Result<std::vector<NodeChange>> ParseJournal(std::string_view bytes);

}  // namespace firn
