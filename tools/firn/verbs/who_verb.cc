#include <string>
#include <vector>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/operator_json.h"
#include "registry/operate/who.h"
#include "registry/state/owner.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/verbs/id_words.h"
#include "tools/firn/verbs/verbs.h"

DECLARE_string(tag);

namespace firn {
namespace {

std::string HolderText(const PastHolder& holder, bool present) {
  return Cat("    ", FormatOwner(holder.owner), " on ",
             (holder.host.empty() ? "an unnamed host" : holder.host), ", pid ", holder.pid,
             ", which held it from ", FormatRfc3339(holder.first),
             (present ? " and may use it until " : " until "), FormatRfc3339(holder.end), "\n");
}

void Add(Output& output, const Issuers& issuers) {
  const Explanation& id = issuers.id;
  output.text += Cat(id.id, "  ", id.utc, "  machine ", id.fields.machine.value(), " (",
                     SlotText(issuers.slot), ")\n");
  for (const PastHolder& holder : issuers.holders) {
    const bool present = issuers.present && &holder == &issuers.holders.back();
    output.text += "  may have been issued by\n" + HolderText(holder, present);
  }
  if (!issuers.unknown.empty()) output.text += "  " + issuers.unknown + "\n";
  output.json.push_back(IssuersJson(issuers));
  AddNote(output, TimeNote(id, SystemClock().Wall()));
}

// Parses the words as ids, or as texts of `tag` unless it is empty.
Result<std::vector<int64_t>> IdsNamed(BlockingCoordinator& registry,
                                      const std::vector<std::string>& words, const std::string& tag,
                                      const IdOptions& options) {
  if (tag.empty()) return IdsIn(words, options);
  FIRN_ASSIGN(const MetaAsRead meta, ReadMeta(registry));
  FIRN_ASSIGN(const Layout layout, Layout::Parse(meta.meta.layout));
  FIRN_ASSIGN(const StoredTag stored, TagStore(registry).Read(tag));
  if (stored.tag().strategy != "snowflake") {
    return Invalid(Cat("tag ", Quoted(tag), " has numbers, which do not contain their issuer"));
  }
  return IdsOfTag(stored.tag(), layout, words, options);
}

Result<Output> RunWho(const std::vector<std::string>& words) {
  if (words.empty()) return Invalid("name at least one id");
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  FIRN_ASSIGN(const std::vector<int64_t> ids,
              IdsNamed(session.registry(), words, FLAGS_tag, ReadIdOptions()));
  FIRN_ASSIGN(const std::vector<Issuers> found, FindIssuers(session.registry(), ids));
  Output output{.json = Json::array(), .text = {}};
  for (const Issuers& issuers : found) Add(output, issuers);
  return output;
}

}  // namespace

Verb WhoVerb() {
  return {.name = "who",
          .arguments = "ID...",
          .summary = "names the process that issued an id, from the registry's records",
          .details =
              "Decodes the id with the cluster's layout, then finds the process that held its\n"
              "machine id when it was issued. Works for snowflake ids only: numbers of segment\n"
              "tags do not identify their issuer.\n"
              "With --tag the ids are texts of that tag, such as UUIDs, or its obfuscated ids.\n",
          .flags = {FIRN_REGISTRY_FLAGS, "form", "tag", "key_dir"},
          .run = RunWho};
}

}  // namespace firn
