#include "server/front/http/http_fields.h"

#include "common/id/explain.h"
#include "common/id/text_form.h"
#include "common/json/json.h"
#include "common/time/civil_time.h"

namespace firn::front {
namespace {

Json IdJson(int64_t id) {
  Json json{{"id", std::to_string(id)}};
  if (id >= 0 && id < kExactInJavaScript) json["number"] = id;
  return json;
}

Json ExplanationJson(const Explanation& explained) {
  const IdFields& fields = explained.fields;
  Json json = IdJson(explained.id);
  json["layout"] = explained.layout;
  json["time"] = explained.utc;
  json["time_ms"] = explained.time.ms();
  json["ticks"] = fields.tick.count();
  json["machine"] = fields.machine.value();
  json["worker"] = explained.worker;
  json["rack"] = explained.rack;
  json["sequence"] = fields.sequence;
  if (fields.version) json["version"] = *fields.version;
  if (fields.type) json["type"] = *fields.type;
  if (fields.method) json["method"] = *fields.method;
  return json;
}

Result<int64_t> NumberInPath(std::string_view part) {
  FIRN_ASSIGN(const std::string text, DecodePathPart(part));
  return ParseId(Base::kDecimal, text);
}

Result<Layout> LayoutOf(const Backend& backend, const HttpRequest& request) {
  FIRN_ASSIGN(const auto text, request.Parameter("layout"));
  return backend.LayoutOf(text.value_or(""));
}

// Reads the fields of an id; parameters have the names of the wire contract.
Result<ComposeRequest> ReadComposeRequest(const HttpRequest& request) {
  ComposeRequest out;
  FIRN_ASSIGN(out.tick, request.Number("ticks"));
  FIRN_ASSIGN(const auto time_ms, request.Number("time_ms"));
  if (time_ms) out.time = WallMs(*time_ms);
  FIRN_ASSIGN(out.machine, request.Unsigned("machine"));
  FIRN_ASSIGN(out.worker, request.Unsigned("worker"));
  FIRN_ASSIGN(out.rack, request.Unsigned("rack"));
  FIRN_ASSIGN(out.sequence, request.Unsigned("sequence"));
  FIRN_ASSIGN(out.version, request.Unsigned("version"));
  FIRN_ASSIGN(out.type, request.Unsigned("type"));
  FIRN_ASSIGN(out.method, request.Unsigned("method"));
  return out;
}

}  // namespace

Result<std::string> ExplainAsJson(const Backend& backend, const HttpRequest& request,
                                  std::string_view part) {
  FIRN_TRY(request.TakesOnly({"layout"}));
  FIRN_ASSIGN(const int64_t id, NumberInPath(part));
  FIRN_ASSIGN(const Layout layout, LayoutOf(backend, request));
  FIRN_ASSIGN(const Explanation explained, Explain(id, layout, backend.SplitOf(layout)));
  return JsonText(ExplanationJson(explained));
}

Result<std::string> ComposeAsJson(const Backend& backend, const HttpRequest& request) {
  FIRN_TRY(request.TakesOnly({"layout", "ticks", "time_ms", "machine", "worker", "rack", "sequence",
                              "version", "type", "method"}));
  FIRN_ASSIGN(const Layout layout, LayoutOf(backend, request));
  FIRN_ASSIGN(const ComposeRequest fields, ReadComposeRequest(request));
  if (!fields.tick && !fields.time) return Invalid("neither time_ms nor ticks is given");
  FIRN_ASSIGN(const int64_t id, Compose(fields, layout, backend.SplitOf(layout), IdFields{}));
  return JsonText(IdJson(id));
}

Result<std::string> TimeAsJson(const Backend& backend, const HttpRequest& request,
                               std::string_view part) {
  FIRN_TRY(request.TakesOnly({"layout"}));
  FIRN_ASSIGN(const int64_t ticks, NumberInPath(part));
  FIRN_ASSIGN(const Layout layout, LayoutOf(backend, request));
  FIRN_ASSIGN(const WallMs time, TimeOfTick(layout, ticks));
  return JsonText({{"ticks", ticks},
                   {"layout", std::string(layout.text())},
                   {"time", FormatRfc3339(time)},
                   {"time_ms", time.ms()}});
}

}  // namespace firn::front
