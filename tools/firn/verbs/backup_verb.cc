#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/json/json.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"
#include "registry/operate/backup.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/verbs/verbs.h"

namespace firn {
namespace {

// Returns the cluster's path in the registry: "/firn/shop" of zk://h1,h2/firn/shop.
std::string PathOf(const std::string& registry) {
  const size_t hosts = registry.find("://") + 3;
  const std::string path = registry.substr(std::min(registry.find('/', hosts), registry.size()));
  return path.substr(0, path.find('?'));
}

Status Keep(const std::string& file, const std::string& text) {
  const std::string path = std::filesystem::absolute(file).lexically_normal().string();
  return ReplaceFile(path, {.path = path + ".new", .mode = 0644}, text);
}

Result<Output> RunBackup(const std::vector<std::string>& words) {
  if (words.size() > 1) return Invalid("name one file, or none for stdout");
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  const std::string path = PathOf(ChosenRegistry());
  FIRN_ASSIGN(const Backup backup, ReadBackup(session.registry(), path, SystemClock().Wall()));
  const std::string text = FormatBackup(backup);
  FIRN_ASSIGN(Json document, ParseJson(text, kBackupBytesMax, text.size()));
  if (words.empty()) return Output{.json = std::move(document), .text = text};
  FIRN_TRY(Keep(words.front(), text));
  return Output{
      .json = {{"file", words.front()},
               {"uuid", backup.root.uuid},
               {"taken_ms", backup.taken.ms()},
               {"tags", backup.tags.size()},
               {"checksum", document["checksum"]}},
      .text = Cat("backup of cluster ", backup.root.uuid, " at ", FormatRfc3339(backup.taken),
                  " written to ", words.front(), ": ", backup.tags.size(), " tags, ",
                  backup.bounds.size(), " machine ids that were claimed\n")};
}

}  // namespace

Verb BackupVerb() {
  return {
      .name = "backup",
      .arguments = "[FILE]",
      .summary = "writes the cluster's settings, reservations, bounds, tags and ledgers to a file",
      .details =
          "One JSON file for firn restore --from, or stdout without FILE. It contains no keys\n"
          "and no credentials. A backup that is older than the last id is still useful: its\n"
          "numbers are lower bounds. Refuses a cluster that is frozen or has lost data, so\n"
          "that an incomplete backup never replaces a complete one.\n",
      .flags = {FIRN_REGISTRY_FLAGS},
      .run = RunBackup};
}

}  // namespace firn
