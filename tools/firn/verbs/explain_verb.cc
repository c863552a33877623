#include <string>
#include <utility>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/id/explain.h"
#include "common/id/text_form.h"
#include "tools/firn/id_words.h"
#include "tools/firn/verbs/verbs.h"

DEFINE_string(layout, "firn", "layout of the ids: a built-in name or a text such as 'time:41 ...'");
DEFINE_int32(rack_bits, -1, "how many of the machine bits name the rack; -1: the layout's default");
DEFINE_string(form, "decimal", "how the ids are written: decimal, base62 or base32");

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

Result<Base> FormOf(const std::string& name) {
  if (name == "decimal") return Base::kDecimal;
  if (name == "base62") return Base::kBase62;
  if (name == "base32") return Base::kCrockford32;
  return Invalid("--form is decimal, base62 or base32, not '" + name + "'");
}

Result<Output> RunExplain(const std::vector<std::string>& words) {
  FIRN_ASSIGN(const LayoutChoice choice, ChosenLayout());
  FIRN_ASSIGN(const std::vector<int64_t> ids, IdsIn(words));
  Output output{.json = Json::array(), .text = {}};
  for (size_t i = 0; i < ids.size(); ++i) {
    const Result<Explanation> explanation = Explain(ids[i], choice.layout, choice.split);
    if (!explanation.ok()) return explanation.status().WithContext(words[i]);
    Add(output, *explanation);
  }
  return output;
}

}  // namespace

Result<LayoutChoice> ChosenLayout() {
  FIRN_ASSIGN(const Layout layout, Layout::Parse(FLAGS_layout));
  if (FLAGS_rack_bits < 0) return LayoutChoice{layout, RackSplit::Default(layout)};
  FIRN_ASSIGN(const RackSplit split, RackSplit::Make(layout, FLAGS_rack_bits));
  return LayoutChoice{layout, split};
}

Result<std::vector<int64_t>> IdsIn(const std::vector<std::string>& words) {
  if (words.empty()) return Invalid("which id?");
  FIRN_ASSIGN(const Base base, FormOf(FLAGS_form));
  std::vector<int64_t> ids;
  for (const std::string& word : words) {
    const Result<int64_t> id = ParseId(base, word);
    if (!id.ok()) return id.status().WithContext("'" + word + "'");
    ids.push_back(*id);
  }
  return ids;
}

Verb ExplainVerb() {
  return {.name = "explain",
          .arguments = "ID...",
          .summary = "shows the fields of ids, without asking a server",
          .details = "Example: firn explain 1169786042799259000 --layout twitter\n",
          .flags = {"layout", "rack_bits", "form"},
          .run = RunExplain};
}

}  // namespace firn
