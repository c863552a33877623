#include <string>
#include <utility>
#include <vector>

#include <gflags/gflags.h>

#include "common/base/secret_file.h"
#include "common/tag/tag_fields.h"
#include "tools/firn/id_rows.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/tag_changes.h"
#include "tools/firn/tags_import.h"
#include "tools/firn/verbs/verbs.h"

DECLARE_bool(dry_run);
DECLARE_bool(force);
DECLARE_string(from);
DEFINE_string(table, "", "Table to read. Empty: leaf_alloc, or tiny_id_info.");
DEFINE_string(store, "registry", "Store that provides the tags' ranges from now on.");
DEFINE_string(credentials_file, "",
              "File with `user:password` for the databases, readable by this user only.");
DEFINE_bool(skip_faulty, false, "Skip tags whose rows are invalid.");

namespace firn {
namespace {

Result<IdTable> TableNamed(const std::string& word) {
  if (word == "leaf") return IdTable::kLeaf;
  if (word == "tinyid") return IdTable::kTinyid;
  return Invalid("--from must be leaf or tinyid");
}

struct ImportOptions {
  IdTable form{};
  std::string table{};             // in each database
  std::string store{};             // of the imported tags
  std::string credentials_file{};  // of all databases
  bool skip_faulty = false, force = false, dry_run = false;
};

Result<ImportOptions> ReadImportOptions() {
  ImportOptions options{.table = FLAGS_table,
                        .store = FLAGS_store,
                        .credentials_file = FLAGS_credentials_file,
                        .skip_faulty = FLAGS_skip_faulty,
                        .force = FLAGS_force,
                        .dry_run = FLAGS_dry_run};
  FIRN_ASSIGN(options.form, TableNamed(FLAGS_from.empty() ? "leaf" : FLAGS_from));
  if (options.table.empty()) {
    options.table = options.form == IdTable::kLeaf ? "leaf_alloc" : "tiny_id_info";
  }
  if (!IsTagWord(options.store)) {
    return Invalid("--store: '" + options.store + "' is not a store name");
  }
  return options;
}

Result<std::vector<IdSource>> ReadSources(const ImportOptions& options,
                                          const std::vector<std::string>& words) {
  if (words.empty()) return Invalid("name at least one database, as host:port/database");
  std::vector<IdDatabase> places;
  for (const std::string& word : words) {
    FIRN_ASSIGN(IdDatabase place, IdDatabase::Parse(word));
    places.push_back(std::move(place));
  }
  if (options.credentials_file.empty()) return Invalid("--credentials_file is missing");
  FIRN_ASSIGN(const Credentials credentials, ReadCredentials(options.credentials_file));
  std::vector<IdSource> sources;
  for (const IdDatabase& place : places) {
    auto rows = ReadIdRows(place, credentials, options.form, options.table);
    if (!rows.ok()) return rows.status().WithContext(place.ToString());
    sources.push_back({place.ToString(), *std::move(rows)});
  }
  return sources;
}

Result<Output> RunImport(const std::vector<std::string>& words) {
  FIRN_ASSIGN(const ImportOptions options, ReadImportOptions());
  FIRN_ASSIGN(const std::vector<IdSource> sources, ReadSources(options, words));
  const TagImport import = PlanImport(options.form, sources, options.store);
  std::string faults;
  for (const std::string& fault : import.faults) faults += fault + "\n";
  if (!faults.empty() && !options.skip_faulty) {
    return Invalid("nothing was imported; --skip_faulty skips these tags:\n" + faults);
  }

  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  TagStore store(session.registry());
  FIRN_ASSIGN(const TagListing listing, store.ReadAll());
  std::vector<TagDefinition> present;
  for (const StoredTag& stored : listing.tags) present.push_back(stored.tag());
  const std::vector<TagDefinition> raised = RaiseTags(present, import.tags);
  if (!options.force) FIRN_TRY(CheckServable(session.registry(), listing.tags, raised));
  FIRN_ASSIGN(Output output, PutTags(store, listing, raised, options.dry_run));
  output.json["faults"] = import.faults;
  output.wrong = !import.faults.empty();
  if (!faults.empty()) output.text += "skipped:\n" + faults;
  return output;
}

}  // namespace

Verb TagsImportVerb() {
  Verb import{
      .name = "import",
      .arguments = "HOST:PORT/DATABASE...",
      .summary = "imports the tags of Leaf or Tinyid databases",
      .details =
          "Each tag continues above every number that any of the databases has issued. A tag that "
          "exists\nkeeps its definition and is raised. Name all databases that share a "
          "Tinyid tag.\nThe databases are only read. With --store=registry, stop the servers of "
          "Leaf or Tinyid first:\nthey ignore the cluster's ledger.\n",
      .flags = {FIRN_REGISTRY_FLAGS, "dry_run", "from", "table", "store", "credentials_file",
                "skip_faulty", "force"}};
  import.run = RunImport;
  return import;
}

}  // namespace firn
