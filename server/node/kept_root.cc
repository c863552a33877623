#include "server/node/kept_root.h"

#include <map>
#include <utility>

#include <fcntl.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/log/log.h"
#include "registry/state/hint.h"
#include "server/node/kept_tags.h"
#include "server/node/open_node.h"

namespace firn {
namespace {

constexpr size_t kHintBytesMax = 64 << 10;

std::string PathOf(const std::string& stem, const std::string& uuid) {
  return stem + "." + uuid + ".root";
}

std::map<std::string, TagDefinition> ReadDefinitions(const std::string& stem,
                                                     const std::string& uuid) {
  std::map<std::string, TagDefinition> definitions;
  const Result<KnownTags> kept = KeptTags::ReadFrom(stem, uuid);
  if (!kept.ok()) return definitions;
  for (const auto& [name, known] : kept->tags) {
    if (!known.node.tag.strategy.empty()) definitions.emplace(name, known.node.tag);
  }
  return definitions;
}

Bounds ReadLast(const std::string& stem, const std::string& uuid) {
  Bounds last;
  for (uint32_t number = 1; number <= kMachineIdsMax; ++number) {
    const std::string path = number == 1 ? stem : Cat(stem, ".", number);
    const auto text = ReadRegularFile(path + ".properties", kHintBytesMax, O_NOFOLLOW);
    const Result<Hint> hint = text.ok() ? ParseHint(*text) : text.status();
    if (hint.ok() && hint->uuid == uuid) last.emplace_back(MachineId(hint->machine), hint->last);
  }
  return last;
}

}  // namespace

Result<RootSettings> ReadKeptRoot(const std::string& stem, const std::string& uuid) {
  const std::string path = PathOf(stem, uuid);
  FIRN_ASSIGN(const std::string text, ReadRegularFile(path, kRootSettingsBytesMax, O_NOFOLLOW));
  Result<RootSettings> settings = ParseRootSettings(text);
  if (!settings.ok()) return settings.status().WithContext(path);
  if (settings->uuid != uuid) return Corrupt(path + ": it is of another cluster");
  return settings;
}

Status WriteKeptRoot(const std::string& stem, const RootSettings& settings) {
  const std::string path = PathOf(stem, settings.uuid);
  return ReplaceFile(path, {.path = path + ".new"}, FormatRootSettings(settings));
}

KeptCluster ReadKeptCluster(const std::string& stem, const std::string& uuid) {
  KeptCluster kept{.tags = ReadDefinitions(stem, uuid), .last = ReadLast(stem, uuid)};
  Result<RootSettings> root = ReadKeptRoot(stem, uuid);
  if (root.ok()) {
    kept.root = *std::move(root);
  } else if (root.code() != Code::kNotFound) {
    LogWarning("state_unusable") << "the saved settings of the root node are unusable: "
                                 << root.status();
  }
  return kept;
}

std::string CommandFromFolder(const std::string& stem, const std::string& uuid,
                              RestoreArguments words, WallMs now) {
  words.uuid = uuid;
  const KeptCluster kept = ReadKeptCluster(stem, uuid);
  return ServerRestoreCommand(std::move(words), kept.root ? &*kept.root : nullptr, kept,
                              /*tags_read=*/false, {.now = now});
}

}  // namespace firn
