#include <map>
#include <optional>
#include <string>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/id/explain.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"
#include "tools/firn/verbs/id_words.h"
#include "tools/firn/verbs/verbs.h"

namespace firn {
namespace {

template <typename Number>
Result<Number> NumberIn(const std::string& text) {
  if (const auto number = ParseNumber<Number>(text)) return *number;
  return Invalid("'" + text + "' is not a whole number in range");
}

// Parses an RFC 3339 date and time, or milliseconds since 1970.
Result<WallMs> ParseTime(const std::string& text) {
  const Result<int64_t> ms = NumberIn<int64_t>(text);
  return ms.ok() ? WallMs(*ms) : ParseRfc3339(text);
}

Status SetField(const std::string& name, const std::string& value, ComposeRequest& request) {
  if (name == "time") {
    FIRN_ASSIGN(request.time, ParseTime(value));
    return {};
  }
  if (name == "tick") {
    FIRN_ASSIGN(request.tick, NumberIn<int64_t>(value));
    return {};
  }
  const std::map<std::string, std::optional<uint64_t>*> fields{
      {"machine", &request.machine},   {"worker", &request.worker},   {"rack", &request.rack},
      {"sequence", &request.sequence}, {"version", &request.version}, {"type", &request.type},
      {"method", &request.method}};
  const auto field = fields.find(name);
  if (field == fields.end()) return Invalid("there is no such field");
  FIRN_ASSIGN(*field->second, NumberIn<uint64_t>(value));
  return {};
}

Result<Output> RunCompose(const std::vector<std::string>& words) {
  FIRN_ASSIGN(const LayoutChoice choice, ChosenLayout());
  ComposeRequest request;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return Invalid("'" + word + "' is not field=value");
    FIRN_TRY(SetField(word.substr(0, equals), word.substr(equals + 1), request)
                 .WithContext("'" + word + "'"));
  }
  IdFields defaults;
  defaults.tick = choice.layout.TickAt(SystemClock().Wall());
  FIRN_ASSIGN(const int64_t id, Compose(request, choice.layout, choice.split, defaults));
  return Output{.json = {{"id", std::to_string(id)}, {"layout", choice.layout.text()}},
                .text = Cat(id, "\n")};
}

}  // namespace

Verb ComposeVerb() {
  return {
      .name = "compose",
      .arguments = "FIELD=VALUE...",
      .summary = "builds an id from its fields, without a server; the id is not issued",
      .details =
          "Fields: time (RFC 3339, or milliseconds since 1970) or tick; machine, or worker and\n"
          "rack; sequence; version, type and method if the layout has them. Defaults: the\n"
          "present time, and 0 for every other field.\n"
          "Example: firn compose time=2026-01-01T00:00:00Z worker=1 rack=1 sequence=7\n",
      .flags = {"layout", "rack_bits"},
      .run = RunCompose};
}

}  // namespace firn
