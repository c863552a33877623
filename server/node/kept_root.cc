#include "server/node/kept_root.h"

#include <fcntl.h>

#include "common/base/files.h"

namespace firn {
namespace {

std::string PathOf(const std::string& stem, const std::string& uuid) {
  return stem + "." + uuid + ".root";
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

}  // namespace firn
