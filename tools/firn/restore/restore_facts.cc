#include "tools/firn/restore/restore_facts.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string_view>
#include <utility>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/net/endpoint.h"
#include "tools/firn/flag_words.h"
#include "tools/firn/registry_session.h"

DEFINE_string(ids_since, "",
              "Date or RFC 3339 time before which no id was issued, in a cluster that serves "
              "undefined tags. Segment and dated numbers end below the first id of that time. "
              "Empty: firn init takes a day before the cluster is made, firn restore keeps what is "
              "known.");
DEFINE_string(uuid, "",
              "UUID of the lost cluster that is re-created, as named in the servers' state "
              "folders.");
DEFINE_int64(skew_max_ms, 10'000, "Largest known clock skew of any server, in milliseconds.");
DEFINE_string(
    set, "",
    "Answer to a question of the plan, as KEY=VALUE; can be repeated. Answers only raise: "
    "TAG.high (its highest number), TAG.start (its next one), TAG.FIELD (of a lost tag), floor "
    "(a time that ids may have reached), window, workers, retire, reserve, lease_share, "
    "default_strategy, tags, definitions, folders.");
DEFINE_string(from, "",
              "For restore: files of `firn backup`, state folders of servers, or - for a document "
              "on standard "
              "input, separated by commas. They name the cluster, and their numbers are lower "
              "bounds. For tags import: origin of the tags, leaf or tinyid (empty: "
              "leaf).");
DEFINE_int64(tag_gap, 1'000'000,
             "Minimum distance by which each segment tag jumps beyond everything known; at least "
             "twice its step_max.");

DEFINE_bool(again, false,
            "Restore once more although no fact is new since the last restore, because the data "
            "were lost again; or without the backup that an unfinished restore used.");

DECLARE_bool(dry_run);

namespace firn {
namespace {

constexpr char kPasted[] = "-";
constexpr char kPlaceholder[] = "DOCUMENT";  // in a printed command

// Returns the text pasted for `--from=-`. Standard input can be read only once, so the text is
// kept.
Result<std::string> PastedText() {
  static const std::string& text =
      *new std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  if (text.size() <= kBackupBytesMax) return text;
  return Invalid(Cat("the pasted document has more than ", kBackupBytesMax, " bytes"));
}

// Reads a file of `firn backup`, a server's document, or its state folder.
Result<Backup> ReadDocument(const std::string& from, const std::string& uuid) {
  std::error_code none;
  if (std::filesystem::is_directory(from, none)) return ReadStateDocument(from, uuid);
  FIRN_ASSIGN(const std::string text,
              from == kPasted ? PastedText() : ReadRegularFile(from, kBackupBytesMax));
  Result<Backup> backup = ParseBackup(text);
  return backup.ok() ? backup : backup.status().WithContext(from);
}

// Reads and adds the documents `from`.
Status ReadDocuments(std::string_view from, RestoreOptions& options) {
  while (!from.empty()) {
    const std::string file(from.substr(0, from.find(',')));
    from.remove_prefix(std::min(from.size(), file.size() + 1));
    FIRN_ASSIGN(Backup document, ReadDocument(file, options.uuid));
    // A printed command may run in another folder, so the path must be absolute.
    const std::string path = file == kPasted
                                 ? kPlaceholder
                                 : std::filesystem::absolute(file).lexically_normal().string();
    FIRN_TRY(AddDocument(path, std::move(document), options));
  }
  return {};
}

}  // namespace

Result<RestoreOptions> ReadRestoreOptions(const std::vector<std::string>& answers) {
  RestoreOptions options{.dry_run = FLAGS_dry_run};
  std::vector<std::string> all, given;
  for (const std::string_view flag : kRestoreFlags) {
    const auto info = gflags::GetCommandLineFlagInfoOrDie(flag.data());
    all.push_back(Cat("--", flag, "=", info.current_value));
    if (!info.is_default) given.push_back(all.back());
  }
  for (const std::string& answer : answers) given.push_back("--set=" + answer);
  FIRN_TRY(SetFlags(all, options));  // also the defaults
  FIRN_TRY(SetFlags(given, options));
  FIRN_TRY(ReadDocuments(FLAGS_from, options));
  return options;
}

std::vector<std::string> AnswersOnCommandLine() {
  std::vector<std::string> answers;
  std::string_view rest = FLAGS_set;
  while (!rest.empty()) {
    const std::string_view answer = rest.substr(0, rest.find(kFlagSeparator));
    rest.remove_prefix(std::min(rest.size(), answer.size() + 1));
    answers.emplace_back(answer);
  }
  return answers;
}

RestoreArguments RestorePlace() {
  return {.registry = ChosenRegistry(), .auth_file = ChosenCredentialsFile(), .host = HostName()};
}

}  // namespace firn
