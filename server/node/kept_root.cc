#include "server/node/kept_root.h"

#include "common/base/files.h"

namespace firn {
namespace {

std::string PathOf(const std::string& stem, const std::string& uuid) {
  return stem + "." + uuid + ".root";
}

}  // namespace

Result<RootSettings> ReadKeptRoot(const std::string& stem, const std::string& uuid) {
  const std::string path = PathOf(stem, uuid);
  Result<RootSettings> settings = ReadRootSettings(path, uuid);
  return settings.ok() ? settings : settings.status().WithContext(path);
}

Status WriteKeptRoot(const std::string& stem, const RootSettings& settings) {
  const std::string path = PathOf(stem, settings.uuid);
  return ReplaceFile(path, {.path = path + ".new"}, FormatRootSettings(settings));
}

}  // namespace firn
