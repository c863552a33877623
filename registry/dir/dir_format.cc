#include "registry/dir/dir_format.h"

#include "common/base/cat.h"
#include "common/base/fnv.h"
#include "common/base/hex.h"
#include "common/base/parse.h"
#include "common/base/url_encoding.h"
#include "registry/seam/requests.h"

namespace firn {
namespace {

constexpr size_t kFolderNameMax = 200;  // file systems take 255
constexpr std::string_view kNodeMagic = "firn-node ";
constexpr std::string_view kJournalMagic = "firn-journal ";

std::string Check(std::string_view bytes) { return ToHex(Fnv1a(bytes)); }

// Removes "key=" and its value from the front of `line`; empty if another word is there.
std::optional<std::string_view> TakeWord(std::string_view& line, std::string_view key) {
  if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != '=') return {};
  line.remove_prefix(key.size() + 1);
  const std::string_view value = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), value.size() + 1));
  return value;
}

template <typename Int>
bool ReadInt(std::string_view text, Int& value) {
  const std::optional<Int> number = ParseNumber<Int>(text);
  value = number.value_or(value);
  return number.has_value();
}

template <typename Int>
bool TakeInt(std::string_view& line, std::string_view key, Int& value) {
  const auto word = TakeWord(line, key);
  return word.has_value() && ReadInt(*word, value);
}

std::string NodeHead(std::string_view name, const Node& node) {
  return Cat("version=", node.stat.version, " created=", node.stat.created_zxid,
             " modified=", node.stat.modified.ms(), " owner=", node.stat.ephemeral_owner,
             " bytes=", node.data.size(), " name=", name);
}

}  // namespace

// --- names --------------------------------------------------------------------------------------

std::string FolderOfName(std::string_view name) {
  std::string folder;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool taken = i == 0 && (name[0] == '.' || name[0] == '~' || name == kNodeFile);
    if (name[i] != '%' && !taken) {
      folder += name[i];
      continue;
    }
    AppendPercent(folder, name[i]);
  }
  if (folder.size() <= kFolderNameMax) return folder;
  return "~" + Check(name) + ToHex(Fnv1a(name, 0x9e3779b97f4a7c15));
}

std::string NameOfFolder(std::string_view folder) {
  if (folder.starts_with('~')) return {};
  std::string name;
  for (size_t i = 0; i < folder.size(); ++i) {
    if (folder[i] != '%') {
      name += folder[i];
      continue;
    }
    const std::optional<char> byte = PercentByte(folder.substr(i + 1, 2));
    if (!byte) return {};
    name += *byte;
    i += 2;
  }
  return FolderOfName(name) == folder ? name : std::string();
}

std::string FolderOfPath(std::string_view path) {
  std::string folder;
  for (size_t begin = 1; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    folder += "/" + FolderOfName(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return folder;
}

// --- nodes --------------------------------------------------------------------------------------

std::string RenderNode(std::string_view name, const Node& node) {
  const std::string head = NodeHead(name, node);
  std::string bytes(kNodeMagic);
  bytes += "check=" + Check(head + node.data) + " " + head + "\n" + node.data;
  return bytes;
}

Result<NodeFile> ParseNode(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  if (!bytes.starts_with(kNodeMagic) || end == std::string_view::npos) {
    return Corrupt("not a node's file");
  }
  std::string_view line = bytes.substr(kNodeMagic.size(), end - kNodeMagic.size());
  NodeFile file;
  NodeStat& stat = file.node.stat;
  file.node.data = bytes.substr(end + 1);
  const auto check = TakeWord(line, "check");
  int64_t modified = 0;
  size_t size = 0;
  const bool good =
      TakeInt(line, "version", stat.version) && TakeInt(line, "created", stat.created_zxid) &&
      TakeInt(line, "modified", modified) && TakeInt(line, "owner", stat.ephemeral_owner) &&
      TakeInt(line, "bytes", size) && line.starts_with("name=");
  if (!good || size != file.node.data.size()) return Corrupt("a node's file is torn");
  stat.modified = WallMs(modified);
  file.name = line.substr(5);
  if (check != Check(NodeHead(file.name, file.node) + file.node.data)) {
    return Corrupt("a node's file has a wrong checksum");
  }
  return file;
}

// --- the journal --------------------------------------------------------------------------------

// A line with the checksum of the rest; then for each node a line "put" or "erase" with the sizes
// of path and bytes, followed by both.
std::string RenderJournal(const std::vector<NodeChange>& changes) {
  std::string body;
  for (const NodeChange& change : changes) {
    body += change.bytes.has_value() ? "put " : "erase ";
    body += Cat(change.path.size(), " ", change.bytes.has_value() ? change.bytes->size() : 0, "\n");
    body += change.path;
    if (change.bytes.has_value()) body += *change.bytes;
  }
  return std::string(kJournalMagic) + Check(body) + "\n" + body;
}

Result<std::vector<NodeChange>> ParseJournal(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  if (!bytes.starts_with(kJournalMagic) || end == std::string_view::npos ||
      bytes.substr(kJournalMagic.size(), end - kJournalMagic.size()) !=
          Check(bytes.substr(end + 1))) {
    return Corrupt("the journal cannot be read");
  }
  std::vector<NodeChange> changes;
  for (std::string_view rest = bytes.substr(end + 1); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const size_t first = line.find(' ');
    const size_t second = line.rfind(' ');
    size_t path_size = 0, data_size = 0;
    const bool sizes = second != first &&
                       ReadInt(line.substr(first + 1, second - first - 1), path_size) &&
                       ReadInt(line.substr(second + 1), data_size);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!sizes || path_size > rest.size() || data_size > rest.size() - path_size) {
      return Corrupt("the journal is torn");
    }
    NodeChange change{std::string(rest.substr(0, path_size)), std::nullopt};
    FIRN_TRY(CheckPath(change.path).WithContext("the journal"));
    if (line.starts_with("put ")) change.bytes = std::string(rest.substr(path_size, data_size));
    changes.push_back(std::move(change));
    rest.remove_prefix(path_size + data_size);
  }
  return changes;
}

}  // namespace firn
