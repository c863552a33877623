#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "common/tag/tag_diff.h"
#include "common/tag/tag_fields.h"
#include "common/tag/tag_ini.h"
#include "common/time/civil_time.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/operator_json.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/table.h"
#include "tools/firn/tag_changes.h"
#include "tools/firn/tag_ids.h"
#include "tools/firn/tag_keys.h"
#include "tools/firn/verbs/verbs.h"

DEFINE_bool(dry_run, false, "Show what would change, and change nothing.");

DECLARE_bool(all);
DECLARE_bool(force);
DECLARE_string(key_dir);

namespace firn {
namespace {

using Words = std::vector<std::string>;

// How a command may change tags.
struct ChangeOptions {
  bool force = false;     // skips the checks whose messages name --force
  bool dry_run = false;   // shows the changes, and makes none
  std::string key_dir{};  // the folder with the keys of obfuscated tags
};

ChangeOptions ReadChangeOptions() {
  return {.force = FLAGS_force, .dry_run = FLAGS_dry_run, .key_dir = FLAGS_key_dir};
}

std::string StateWord(const TagNode& node) {
  if (IsRetired(node)) return "retired";
  return node.tag.disabled ? "disabled" : "enabled";
}

Result<Output> RunListTags(const Words& words) {
  if (!words.empty()) return Invalid("list takes no arguments");
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  FIRN_ASSIGN(const TagListing listing, TagStore(session.registry()).ReadAll());
  Output output;
  output.json["tags"] = Json::array();
  output.json["faults"] = listing.faults;
  output.wrong = !listing.faults.empty();
  Table table({"TAG", "STRATEGY", "STORE", "STEP", "HIGH", "PLUGINS", "STATE"});
  size_t hidden = 0;
  for (const StoredTag& stored : listing.tags) {
    const TagDefinition& tag = stored.tag();
    if (IsRetired(stored.node) && !FLAGS_all) {
      ++hidden;
      continue;
    }
    const bool segment = tag.HasLedger();
    output.json["tags"].push_back(TagJson(tag));
    table.Add({tag.name, tag.strategy, segment ? tag.store : "-",
               segment ? std::to_string(tag.step) : "-", segment ? std::to_string(tag.high) : "-",
               FieldText(*FindTagField("plugins"), tag), StateWord(stored.node)});
  }
  output.text = table.Text();
  if (hidden > 0) output.text += Cat(hidden, " retired tags are hidden (--all)\n");
  for (const std::string& fault : listing.faults) output.text += "WRONG: " + fault + "\n";
  return output;
}

// Adds the numbers that the registry's ledger has provided while the tag's store was unreachable.
// The database does not show them.
void ShowStandIn(const TagNode& node, Json& json, std::string& text) {
  const StandIn& stand_in = node.stand_in;
  if (stand_in.store.empty() || stand_in.since == WallMs()) return;
  const std::string since = FormatRfc3339(stand_in.since);
  json["ledger_since"] = since;
  json["store_picked"] = std::to_string(stand_in.picked);
  text += Cat("# store ", stand_in.store, " unreachable since ", since, ": its highest number is ",
              stand_in.picked, "; the ledger, in its place, has reached ", node.tag.high, "\n");
}

Result<Output> RunShow(const Words& names) {
  if (names.empty()) return Invalid("name at least one tag");
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  TagStore store(session.registry());
  Output output{.json = Json::array(), .text = {}};
  for (const std::string& name : names) {
    FIRN_ASSIGN(const StoredTag stored, store.Read(name));
    output.json.push_back(TagJson(stored.tag()));
    output.text += WriteTagIni({stored.tag()});
    output.text += Cat("# high = ", stored.tag().high, ", version ", stored.stat.version, "\n");
    ShowStandIn(stored.node, output.json.back(), output.text);
  }
  return output;
}

// Sets the fields of `tag` that the words name as key=value.
Status SetFields(const Words& words, TagDefinition& tag) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return Invalid("'" + word + "' is not key=value");
    FIRN_TRY(SetByKey(word.substr(0, equals), word.substr(equals + 1), tag));
  }
  return {};
}

Result<Output> RunCreate(const Words& words) {
  if (words.empty()) return Invalid("name a tag");
  const ChangeOptions options = ReadChangeOptions();
  TagDefinition tag;
  tag.name = words.front();
  tag.strategy = "segment";
  FIRN_TRY(SetFields({words.begin() + 1, words.end()}, tag));
  FIRN_TRY(FillKeyCheck(options.key_dir, tag));
  FIRN_TRY(CheckTag(tag));
  if (!options.force) FIRN_TRY(CheckNames(tag));
  Output output = ShowChanges(DiffTags({}, {tag}));
  if (options.dry_run) return output;
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  if (!options.force) FIRN_TRY(CheckServable(session.registry(), {}, {tag}));
  FIRN_TRY(TagStore(session.registry()).Create(tag));
  FIRN_TRY(AddTagNotes(session.registry(), {tag}, output));
  return Done(std::move(output));
}

// Runs CheckNames on each tag whose strategy, plugins or zone differ from those in the cluster.
Status CheckNewNames(const std::vector<StoredTag>& present,
                     const std::vector<TagDefinition>& tags) {
  for (const TagDefinition& tag : tags) {
    const bool as_before =
        std::any_of(present.begin(), present.end(), [&tag](const StoredTag& stored) {
          const TagDefinition& before = stored.tag();
          return before.name == tag.name && before.strategy == tag.strategy &&
                 before.plugins == tag.plugins && before.zone == tag.zone;
        });
    if (!as_before) FIRN_TRY(CheckNames(tag).WithContext("tag " + Quoted(tag.name)));
  }
  return {};
}

Result<Output> Edit(const std::string& name, const Words& settings, const ChangeOptions& options) {
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  TagStore store(session.registry());
  FIRN_ASSIGN(const StoredTag stored, store.Read(name));
  TagDefinition after = stored.tag();
  FIRN_TRY(SetFields(settings, after));
  FIRN_TRY(FillKeyCheck(options.key_dir, after));
  if (!options.force) FIRN_TRY(CheckNewNames({stored}, {after}));
  Output output = ShowChanges(DiffTags({stored.tag()}, {after}));
  FIRN_TRY(CheckEdit(stored.tag(), after));
  if (!options.force) FIRN_TRY(CheckServable(session.registry(), {stored}, {after}));
  FIRN_TRY(AddTagNotes(session.registry(), {after}, output));
  if (options.dry_run || after == stored.tag()) return output;
  FIRN_TRY(store.Edit(stored, after));
  return Done(std::move(output));
}

Result<Output> RunSet(const Words& words) {
  if (words.size() < 2) return Invalid("set requires a tag and at least one KEY=VALUE");
  return Edit(words.front(), {words.begin() + 1, words.end()}, ReadChangeOptions());
}

Result<Output> RunDisable(const Words& words) {
  if (words.size() != 1) return Invalid("disable requires exactly one tag");
  return Edit(words.front(), {"disabled=true"}, ReadChangeOptions());
}

Result<Output> RunRetire(const Words& words) {
  if (words.size() != 1) return Invalid("retire requires exactly one tag");
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  FIRN_TRY(TagStore(session.registry()).Retire(words.front()));
  return Output{.json = {{"tag", words.front()}, {"done", true}},
                .text = Cat("tag ", words.front(), " is retired: it issues no more ids\n")};
}

Result<Output> RunDelete(const Words& words) {
  if (words.size() != 1) return Invalid("delete requires exactly one tag");
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  FIRN_TRY(TagStore(session.registry()).Delete(words.front()));
  return Output{.json = {{"tag", words.front()}, {"done", true}},
                .text = Cat("tag ", words.front(), " is deleted; its name is free\n")};
}

Result<TagIni> ReadIniFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return NotFound("cannot read the file " + path);
  TagIni ini = ParseTagIni(text.str());
  FIRN_TRY(ini.status().WithContext(path));
  return ini;
}

// Keeps the present start of a tag if the file does not set it: it may have been raised since.
void KeepStarts(const std::vector<StoredTag>& present, std::vector<TagDefinition>& tags) {
  for (TagDefinition& tag : tags) {
    const auto stored = std::find_if(present.begin(), present.end(), [&tag](const auto& one) {
      return one.tag().name == tag.name;
    });
    if (stored == present.end() || tag.start || !tag.HasLedger()) continue;
    tag.start = stored->tag().start;
  }
}

Result<Output> RunApply(const Words& words) {
  if (words.size() != 1) return Invalid("apply requires exactly one file");
  const ChangeOptions options = ReadChangeOptions();
  FIRN_ASSIGN(TagIni ini, ReadIniFile(words.front()));
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  TagStore store(session.registry());
  FIRN_ASSIGN(const TagListing listing, store.ReadAll());
  KeepStarts(listing.tags, ini.tags);
  if (!options.force) {
    FIRN_TRY(CheckNewNames(listing.tags, ini.tags));
    FIRN_TRY(CheckServable(session.registry(), listing.tags, ini.tags));
  }
  FIRN_ASSIGN(Output output, PutTags(store, listing, ini.tags, options.dry_run));
  FIRN_TRY(AddTagNotes(session.registry(), ini.tags, output));
  return output;
}

}  // namespace

Verb TagsVerb() {
  static const std::string& keys = *new std::string(DescribeTagKeys());
  Verb list{.name = "list",
            .summary = "lists all tags, retired ones with --all",
            .flags = {FIRN_REGISTRY_FLAGS, "all"}};
  list.run = RunListTags;
  Verb show{.name = "show",
            .arguments = "TAG...",
            .summary = "shows tags as a file for `apply`",
            .flags = {FIRN_REGISTRY_FLAGS}};
  show.run = RunShow;
  Verb apply{.name = "apply",
             .arguments = "FILE",
             .summary = "creates and changes the tags of an INI file",
             .details =
                 "Checks the whole file before the first write, and shows the changes. Tags that "
                 "are not in\nthe file stay as they are. A tag without `start` keeps its present "
                 "one.\n",
             .flags = {FIRN_REGISTRY_FLAGS, "dry_run", "force"}};
  apply.run = RunApply;
  Verb create{.name = "create",
              .arguments = "TAG [KEY=VALUE...]",
              .summary = "creates a tag, with strategy=segment unless given",
              .details = keys,
              .flags = {FIRN_REGISTRY_FLAGS, "dry_run", "force", "key_dir"}};
  create.run = RunCreate;
  Verb set{.name = "set",
           .arguments = "TAG KEY=VALUE...",
           .summary = "changes fields of a tag",
           .details = keys,
           .flags = {FIRN_REGISTRY_FLAGS, "dry_run", "force", "key_dir"}};
  set.run = RunSet;
  Verb disable{.name = "disable",
               .arguments = "TAG",
               .summary = "stops a tag; set TAG disabled=false resumes above its used numbers",
               .flags = {FIRN_REGISTRY_FLAGS, "dry_run"}};
  disable.run = RunDisable;
  Verb retire{.name = "retire",
              .arguments = "TAG",
              .summary = "stops a tag for good and hides it from `list`",
              .details =
                  "For a tag that has issued ids, which cannot be deleted: another tag of its name "
                  "would issue\nthem again. `set TAG disabled=false` undoes it.\n",
              .flags = {FIRN_REGISTRY_FLAGS}};
  retire.run = RunRetire;
  Verb remove{.name = "delete",
              .arguments = "TAG",
              .summary = "deletes a tag that has never issued a number",
              .details =
                  "Refuses a tag that may have issued ids; use retire. A deleted tag may be "
                  "created again,\nalso in another form.\n",
              .flags = {FIRN_REGISTRY_FLAGS}};
  remove.run = RunDelete;
  return {.name = "tags",
          .summary = "the cluster's tags",
          .below = {std::move(list), std::move(show), std::move(apply), std::move(create),
                    std::move(set), std::move(disable), std::move(retire), std::move(remove),
                    TagsImportVerb()}};
}

}  // namespace firn
