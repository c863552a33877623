#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/base/fnv.h"
#include "common/base/hex.h"
#include "common/id/rack_split.h"
#include "common/log/log.h"
#include "registry/operate/backup.h"
#include "registry/state/hint.h"
#include "registry/state/kept_bounds.h"
#include "registry/state/known_tags.h"

namespace firn {
namespace {

constexpr size_t kHintBytesMax = 64 << 10;
constexpr char kMachineIdFile[] = "/etc/machine-id";

using Clusters = std::map<std::string, Backup>;  // by uuid

WallMs WrittenAt(const std::string& path) {
  struct stat told {};
  return stat(path.c_str(), &told) == 0 ? WallMs(int64_t{told.st_mtime} * 1000) : WallMs();
}

Backup Piece(const std::string& uuid) {
  Backup piece{.composed = true, .settings_known = false, .tags_known = false};
  piece.root.uuid = uuid;
  piece.root.window = Milliseconds(0);
  return piece;
}

Status Add(const Backup& piece, Clusters& clusters) {
  const auto [known, is_first] = clusters.try_emplace(piece.root.uuid, piece);
  if (is_first) return {};
  FIRN_ASSIGN(known->second, MergeBackups(known->second, piece));
  return {};
}

// <stem>.<uuid>.root and <stem>.<uuid>.tags. The folder is as old as its tags: other files may be
// written while those are not.
Status AddCopy(const std::string& path, const std::string& uuid, Clusters& clusters) {
  Backup piece = Piece(uuid);
  if (path.ends_with(".root")) {
    FIRN_ASSIGN(piece.root, ReadRootSettings(path, uuid));
    piece.settings_known = true;
    return Add(piece, clusters);
  }
  FIRN_ASSIGN(const std::string text, ReadRegularFile(path, kKnownTagsBytesMax, O_NOFOLLOW));
  FIRN_ASSIGN(const KnownTags tags, ParseKnownTags(uuid, text));
  piece.tags_known = tags.complete;
  piece.taken = WrittenAt(path);
  for (const auto& [name, known] : tags.tags) {
    if (!known.node.tag.strategy.empty()) piece.tags.push_back(known.node);
  }
  return Add(piece, clusters);
}

Status AddHint(const std::string& text, Clusters& clusters) {
  FIRN_ASSIGN(const Hint hint, ParseHint(text));
  if (!IsUuid(hint.uuid)) return {};
  Backup piece = Piece(hint.uuid);
  if (hint.last != WallMs()) piece.bounds.emplace_back(MachineId(hint.machine), hint.last);
  return Add(piece, clusters);
}

// The bounds of leases name racks and workers, whose machine ids follow from the settings.
Status AddLeases(const KeptBounds& kept, Clusters& clusters) {
  if (!IsUuid(kept.uuid) || kept.bounds.empty()) return {};
  Backup piece = Piece(kept.uuid);
  const auto cluster = clusters.find(kept.uuid);
  const RootSettings root = cluster == clusters.end() ? RootSettings() : cluster->second.root;
  const Result<Layout> layout = Layout::Parse(root.layout);
  const auto split = layout.ok() ? RackSplit::Make(*layout, root.rack_bits) : layout.status();
  std::map<MachineId, WallMs> bounds;
  std::set<WallMs> reached;
  for (const KeptBound& one : kept.bounds) {
    const auto machine = split.ok() ? split->Join(one.slot.worker, one.slot.rack)
                                    : Result<MachineId>(split.status());
    if (machine.ok()) {
      bounds[*machine] = std::max(bounds[*machine], one.bound);
    } else {
      reached.insert(one.bound);
    }
  }
  piece.reached.assign(reached.begin(), reached.end());
  piece.bounds.assign(bounds.begin(), bounds.end());
  return Add(piece, clusters);
}

// Returns the cluster of <stem>.<uuid>.root or <stem>.<uuid>.tags; empty: another file.
std::string ClusterOf(const std::filesystem::path& name) {
  const std::string extension = name.extension(), uuid = name.stem().extension();
  const bool copied = (extension == ".root" || extension == ".tags") && uuid.size() > 1 &&
                      IsUuid(std::string_view(uuid).substr(1));
  return copied ? uuid.substr(1) : "";
}

Status ReadFile(const std::string& path, Clusters& clusters, std::vector<KeptBounds>& leases) {
  const std::string uuid = ClusterOf(path), extension = std::filesystem::path(path).extension();
  if (!uuid.empty()) return AddCopy(path, uuid, clusters);
  if (extension == ".properties") {
    FIRN_ASSIGN(const std::string text, ReadRegularFile(path, kHintBytesMax, O_NOFOLLOW));
    return AddHint(text, clusters);
  }
  if (extension != ".leases") return {};
  FIRN_ASSIGN(const std::string text, ReadRegularFile(path, kKeptBoundsBytesMax, O_NOFOLLOW));
  FIRN_ASSIGN(KeptBounds kept, ParseKeptBounds(text));
  leases.push_back(std::move(kept));
  return {};
}

Result<Backup> Chosen(const std::string& folder, const std::string& uuid, Clusters clusters) {
  if (uuid.empty() && clusters.size() > 1) {
    std::string names;
    for (const auto& [name, known] : clusters) names += Cat(names.empty() ? "" : ", ", name);
    return Conflict(Cat(folder, " has the files of several clusters: ", names,
                        "; name the lost one with --uuid"));
  }
  const auto known = uuid.empty() ? clusters.begin() : clusters.find(uuid);
  if (known == clusters.end()) {
    return NotFound(Cat(folder, " has no file of ",
                        uuid.empty() ? "a server's cluster" : Cat("cluster ", uuid)));
  }
  known->second.cluster = folder;
  known->second.checksum = IdentityOf(folder);
  return std::move(known->second);
}

}  // namespace

std::string IdentityOf(const std::string& folder) {
  const Result<FileHandle> handle = FileHandle::Open(folder, O_RDONLY | O_DIRECTORY);
  struct stat told {};
  if (!handle.ok() || fstat(handle->fd(), &told) != 0) return "";
  const std::string machine = ReadRegularFile(kMachineIdFile, kHintBytesMax).value_or("");
  return "folder-" +
         ToHex(Fnv1a(Cat(told.st_dev, " ", told.st_ino, " ", BirthOf(handle->fd()), " ", machine)));
}

Result<Backup> ReadStateDocument(const std::string& folder, const std::string& uuid) {
  std::error_code failed;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    paths.push_back(entry.path());
  }
  if (failed) return FileFailure("reading", folder, failed.value());
  std::ranges::sort(paths);
  Clusters clusters;
  std::vector<KeptBounds> leases;
  for (const std::string& path : paths) {
    const std::string of = ClusterOf(path);
    if (!of.empty() && !uuid.empty() && of != uuid) continue;
    const Status read = ReadFile(path, clusters, leases);
    if (read.ok() || read.code() == Code::kNotFound) continue;  // removed since it was listed
    if (!of.empty()) return read.WithContext(path);
    LogWarning("state_unusable") << path << " is of no use for a restore: " << read;
  }
  for (const KeptBounds& kept : leases) FIRN_TRY(AddLeases(kept, clusters));
  return Chosen(folder, uuid, std::move(clusters));
}

}  // namespace firn
