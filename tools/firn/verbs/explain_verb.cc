#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/id/explain.h"
#include "common/time/clock.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_node.h"
#include "registry/cluster/tag_store.h"
#include "tools/firn/client_session.h"
#include "tools/firn/flag_words.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/verbs/id_words.h"
#include "tools/firn/verbs/verbs.h"

DEFINE_string(tag, "",
              "Tag whose texts or numbers the ids are; its definition is read from the registry.");

namespace firn {
namespace {

void AddConst(Output& output, Json& json, const char* name, const std::optional<uint64_t>& value) {
  if (!value) return;
  json[name] = *value;
  output.text += Cat("  ", name, " ", *value);
}

void Add(Output& output, const Explanation& e) {
  const IdFields& fields = e.fields;
  Json json{{"id", std::to_string(e.id)},
            {"layout", e.layout},
            {"time", e.utc},
            {"time_ms", e.time.ms()},
            {"tick", fields.tick.count()},
            {"machine", fields.machine.value()},
            {"worker", e.worker},
            {"rack", e.rack},
            {"sequence", fields.sequence}};
  output.text += Cat(e.id, "  ", e.utc, "  machine ", fields.machine.value(), " (worker ", e.worker,
                     ", rack ", e.rack, ")  sequence ", fields.sequence);
  AddConst(output, json, "version", fields.version);
  AddConst(output, json, "type", fields.type);
  AddConst(output, json, "method", fields.method);
  output.text += "\n";
  output.json.push_back(std::move(json));
}

// Returns the layout and the rack bits that the cluster's root node names.
Result<LayoutChoice> LayoutOf(const ClusterMeta& meta) {
  FIRN_ASSIGN(const Layout layout, Layout::Parse(meta.layout));
  FIRN_ASSIGN(const RackSplit split, RackSplit::Make(layout, meta.rack_bits));
  return LayoutChoice{layout, split};
}

// The means to read the ids of one command: servers or a layout, and the ids' tag.
struct Reader {
  std::unique_ptr<Client> servers;
  std::optional<LayoutChoice> choice;
  std::optional<TagDefinition> tag;
  bool guessed = false;

  Result<Explanation> Read(int64_t id) const {
    return servers ? servers->Explain(id) : Explain(id, choice->layout, choice->split);
  }
};

// Opens the registry and the servers that the flags name, to read ids of `tag` unless it is empty.
Result<Reader> OpenReader(const std::string& tag) {
  Reader reader;
  const bool layout_said = IsFlagSet("layout") || IsFlagSet("rack_bits");
  const bool by_servers = ServersAreNamed();
  if (!tag.empty() || (!layout_said && !by_servers && RegistryIsNamed())) {
    FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
    FIRN_ASSIGN(const MetaAsRead meta, ReadMeta(session.registry()));
    FIRN_ASSIGN(reader.choice, LayoutOf(meta.meta));
    if (tag.empty()) return reader;
    FIRN_TRY(session.registry().Sync(TagPath(tag)));  // so that the ledger is current
    FIRN_ASSIGN(const StoredTag stored, TagStore(session.registry()).Read(tag));
    reader.tag = stored.tag();
  }
  if (layout_said) {
    FIRN_ASSIGN(reader.choice, ChosenLayout());
  } else if (by_servers) {
    FIRN_ASSIGN(reader.servers, OpenClient());
  } else if (!reader.choice) {
    reader.guessed = true;
    FIRN_ASSIGN(reader.choice, ChosenLayout());
  }
  return reader;
}

// Adds an id of a segment or dated tag. Such an id contains no time, but a dated id contains its
// period.
Status AddNumber(Output& output, int64_t id, const TagDefinition& tag) {
  Json json{{"id", std::to_string(id)}, {"tag", tag.name}, {"number", id}};
  std::string what = "it contains no time";
  if (const auto dated = tag.Dated()) {
    const int64_t period = dated->PeriodOf(id), count = dated->CountOf(id);
    if (!dated->IsPeriod(period) || count == 0) {
      return Invalid(Cat(id, " is not a number of tag '", tag.name, "', which consists of a ",
                         PeriodName(tag.period), " and a count of ", tag.digits, " digits"));
    }
    json["period"] = period;
    json["count"] = count;
    what = Cat("number ", count, " of ", period);
  }
  output.json.push_back(std::move(json));
  output.text += Cat(id, "  a number of tag ", tag.name, " (", tag.strategy, "): ", what, "\n");
  const bool beyond = tag.HasLedger() && id >= tag.NextBegin();
  AddNote(output, !beyond ? ""
                          : Cat("it has not been issued: the tag's next range begins at ",
                                tag.NextBegin()));
  return {};
}

// Adds a note if the date may be wrong.
void AddNotes(Output& output, const Explanation& e, const Reader& reader) {
  std::string note = TimeNote(e, SystemClock().Wall());
  if (reader.guessed) {
    const std::string guess =
        "read with layout " + e.layout +
        ", because no cluster is named; use --registry, --servers or --layout";
    note = note.empty() ? guess : guess + "; " + note;
  }
  AddNote(output, note);
}

Status AddId(Output& output, const Reader& reader, int64_t id) {
  if (reader.tag && reader.tag->strategy != "snowflake") return AddNumber(output, id, *reader.tag);
  FIRN_ASSIGN(const Explanation explanation, reader.Read(id));
  Add(output, explanation);
  AddNotes(output, explanation, reader);
  return {};
}

Result<Output> RunExplain(const std::vector<std::string>& words) {
  if (words.empty()) return Invalid("name at least one id");
  FIRN_ASSIGN(const Reader reader, OpenReader(FLAGS_tag));
  const IdOptions options = ReadIdOptions();
  std::vector<int64_t> ids;
  if (reader.tag) {
    FIRN_ASSIGN(ids, IdsOfTag(*reader.tag, reader.choice->layout, words, options));
  } else {
    FIRN_ASSIGN(ids, IdsIn(words, options));
  }
  Output output{.json = Json::array(), .text = {}};
  for (size_t i = 0; i < ids.size(); ++i) {
    FIRN_TRY(AddId(output, reader, ids[i]).WithContext(words[i]));
  }
  return output;
}

Result<Output> RunReveal(const std::vector<std::string>& words) {
  if (words.size() < 2) return Invalid("reveal requires a tag and at least one id");
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  FIRN_ASSIGN(const StoredTag stored, TagStore(session.registry()).Read(words.front()));
  const TagDefinition& tag = stored.tag();
  if (!tag.HasPlugin("obfuscate")) return Invalid("tag " + tag.name + " is not obfuscated");
  const std::vector<std::string> shown(words.begin() + 1, words.end());
  // Any layout will do: the text of an obfuscated tag never shows an id's fields.
  FIRN_ASSIGN(const std::vector<int64_t> ids,
              IdsOfTag(tag, Layout::Firn(), shown, ReadIdOptions()));
  Output output{.json = Json::array(), .text = {}};
  for (size_t i = 0; i < ids.size(); ++i) {
    output.json.push_back(Json{{"shown", shown[i]}, {"id", std::to_string(ids[i])}});
    output.text += Cat(ids[i], "\n");
  }
  return output;
}

}  // namespace

Verb RevealVerb() {
  return {
      .name = "reveal",
      .arguments = "TAG ID...",
      .summary = "converts the obfuscated ids of a tag back to the original ids",
      .details =
          "Requires the tag's key: --key_dir names the folder that contains it, as on a server.\n",
      .flags = {FIRN_REGISTRY_FLAGS, "key_dir", "form"},
      .run = RunReveal};
}

Verb ExplainVerb() {
  return {
      .name = "explain",
      .arguments = "ID...",
      .summary = "shows the fields of ids",
      .details =
          "Uses the layout of the cluster that --registry or --servers name (or FIRN_REGISTRY,\n"
          "FIRN_SERVERS), or --layout. Without any of them it guesses the layout, and says so.\n"
          "Example: firn explain 1169786042799259000 --layout twitter\n",
      .flags = {"layout", "rack_bits", "form", "tag", "key_dir", "timeout_ms", FIRN_CLIENT_FLAGS},
      .run = RunExplain};
}

}  // namespace firn
