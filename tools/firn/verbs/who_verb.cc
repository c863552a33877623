#include <string>
#include <vector>

#include "common/base/cat.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"
#include "registry/operate/operator_json.h"
#include "registry/operate/who.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/table.h"
#include "tools/firn/verbs/id_words.h"
#include "tools/firn/verbs/verbs.h"

namespace firn {
namespace {

std::string HolderText(const PastHolder& holder, bool present) {
  return Cat("    ", OwnerForPeople(holder.owner), " on ",
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

Result<Output> RunWho(const std::vector<std::string>& words) {
  FIRN_ASSIGN(const std::vector<int64_t> ids, IdsIn(words));
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  FIRN_ASSIGN(const std::vector<Issuers> found, FindIssuers(session.registry(), ids));
  Output output{.json = Json::array(), .text = {}};
  for (const Issuers& issuers : found) Add(output, issuers);
  return output;
}

}  // namespace

Verb WhoVerb() {
  return {
      .name = "who",
      .arguments = "ID...",
      .summary = "names the process that issued an id, from the registry's records",
      .details =
          "Reads the id by the cluster's layout and finds the holder of its machine id at its\n"
          "time. Works for snowflake ids only: numbers of segment tags and obfuscated ids do not\n"
          "contain their issuer.\n",
      .flags = {FIRN_REGISTRY_FLAGS, "form"},
      .run = RunWho};
}

}  // namespace firn
