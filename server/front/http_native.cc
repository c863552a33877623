#include <algorithm>

#include <nlohmann/json.hpp>

#include "common/civil_time.h"
#include "common/explain.h"
#include "common/text_form.h"
#include "server/front/http_asker.h"
#include "server/front/http_handlers.h"
#include "server/front/http_refusal.h"

namespace firn::front {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kExactInJavaScript = int64_t{1} << 53;

bool IsExactInJavaScript(const Run& run) {
  return run.first >= 0 && run.last() < kExactInJavaScript;
}

// {"ids":["7","8"],"numbers":[7,8]}; numbers only where JavaScript reads them exactly.
void AppendIds(const Runs& runs, std::string& out) {
  char before = '[';
  out += "\"ids\":";
  runs.ForEach([&](int64_t id) {
    out += before;
    out += '"';
    AppendNumber(out, id);
    out += '"';
    before = ',';
  });
  out += ']';
  const auto all = runs.runs();
  if (!std::all_of(all.begin(), all.end(), IsExactInJavaScript)) return;
  before = '[';
  out += ",\"numbers\":";
  runs.ForEach([&](int64_t id) {
    out += before;
    AppendNumber(out, id);
    before = ',';
  });
  out += ']';
}

void AppendRuns(const Runs& runs, std::string& out) {
  char before = '[';
  out += "\"runs\":";
  for (const Run& run : runs.runs()) {
    out += before;
    out += "{\"first\":\"";
    AppendNumber(out, run.first);
    out += "\",\"count\":";
    AppendNumber(out, run.count);
    out += ",\"stride\":";
    AppendNumber(out, run.stride);
    out += '}';
    before = ',';
  }
  out += ']';
}

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

class NativeHandler final : public HttpAsker {
 public:
  using HttpAsker::HttpAsker;

  Outcome Handle(const HttpRequest& request, Attempt& attempt, HttpAnswer& answer) override {
    std::string_view rest;
    if (!request.path.starts_with("/v1/")) return Outcome::kNotMine;
    if (TakePrefix(request.path, "/v1/ids/", &rest)) return Ids(request, rest, attempt, answer);
    if (TakePrefix(request.path, "/v1/explain/", &rest)) {
      return Say(ExplainIt(request, rest), request, answer);
    }
    if (request.path == "/v1/compose") return Say(ComposeIt(request), request, answer);
    if (TakePrefix(request.path, "/v1/time/", &rest)) {
      return Say(TimeOf(request, rest), request, answer);
    }
    return Outcome::kNotMine;
  }

 private:
  void No(const Refusal& refusal, HttpAnswer& answer) override { AnswerRefusal(refusal, answer); }

  Outcome Say(const Result<Json>& json, const HttpRequest& request, HttpAnswer& answer) {
    if (WrongVerb(request, answer)) return Outcome::kAnswered;
    if (!json.ok()) return Bad(json.status(), answer);
    answer.content_type = HttpAnswer::kJson;
    answer.body = Json(json.value_or({})).dump();
    return Outcome::kAnswered;
  }

  struct Wish {
    std::string tag;
    int64_t count = 1;
    Form form = Form::kNumbers;
  };
  Result<Wish> ReadWish(const HttpRequest& request, std::string_view tag) const;
  Outcome Ids(const HttpRequest& request, std::string_view tag, Attempt& attempt,
              HttpAnswer& answer);
  void Write(const Wish& wish, const Runs& runs, std::string& out) const;

  Result<Json> ExplainIt(const HttpRequest& request, std::string_view id) const;
  Result<Json> ComposeIt(const HttpRequest& request) const;
  Result<Json> TimeOf(const HttpRequest& request, std::string_view ticks) const;
  Result<Layout> LayoutOf(const HttpRequest& request) const {
    FIRN_ASSIGN(const auto text, request.Parameter("layout"));
    return backend_.LayoutOf(text.value_or(""));
  }
};

Result<NativeHandler::Wish> NativeHandler::ReadWish(const HttpRequest& request,
                                                    std::string_view tag) const {
  Wish wish;
  FIRN_ASSIGN(wish.tag, DecodePathPart(tag));
  if (request.query.empty() && request.body.empty()) return wish;
  FIRN_ASSIGN(const auto count, request.Number("count"));
  FIRN_ASSIGN(const auto form, request.Parameter("form"));
  wish.count = count.value_or(1);
  const std::string name = form.value_or("number");
  if (name == "text") {
    wish.form = Form::kText;
  } else if (name == "runs") {
    wish.form = Form::kRuns;
  } else if (name != "number") {
    return Invalid("form is '" + name + "', it may be number, text or runs");
  }
  const Limits& limits = backend_.limits;
  if (wish.form != Form::kRuns && wish.count > limits.list_ids_max) {
    return Invalid("count is " + std::to_string(wish.count) + ", a list has at most " +
                   std::to_string(limits.list_ids_max) + ": ask for form=runs");
  }
  if (wish.count > limits.runs_ids_max) {
    return Invalid("count is " + std::to_string(wish.count) + ", a call has at most " +
                   std::to_string(limits.runs_ids_max));
  }
  return wish;
}

NativeHandler::Outcome NativeHandler::Ids(const HttpRequest& request, std::string_view tag,
                                          Attempt& attempt, HttpAnswer& answer) {
  if (WrongVerb(request, answer)) return Outcome::kAnswered;
  const auto wish = ReadWish(request, tag);
  if (!wish.ok()) return Bad(wish.status(), answer);
  const Wish& asked = *wish;
  return Ask(asked.tag, asked.count, asked.form, attempt, answer, [&](const Runs& runs) {
    answer.content_type = HttpAnswer::kJson;
    answer.body += "{\"tag\":";
    AppendJsonText(answer.body, desk_.NameOf(asked.tag));
    answer.body += ',';
    Write(asked, runs, answer.body);
    answer.body += '}';
  });
}

void NativeHandler::Write(const Wish& wish, const Runs& runs, std::string& out) const {
  if (wish.form == Form::kNumbers) return AppendIds(runs, out);
  if (wish.form == Form::kRuns) return AppendRuns(runs, out);
  char before = '[';
  std::string text;
  out += "\"texts\":";
  runs.ForEach([&](int64_t id) {
    text.clear();
    backend_.view.AppendText(desk_.NameOf(wish.tag), id, text);
    out += before;
    AppendJsonText(out, text);
    before = ',';
  });
  out += ']';
}

Result<Json> NativeHandler::ExplainIt(const HttpRequest& request, std::string_view part) const {
  FIRN_ASSIGN(const int64_t id, NumberInPath(part));
  FIRN_ASSIGN(const Layout layout, LayoutOf(request));
  FIRN_ASSIGN(const Explanation explained, Explain(id, layout, backend_.SplitOf(layout)));
  return ExplanationJson(explained);
}

Result<Json> NativeHandler::ComposeIt(const HttpRequest& request) const {
  FIRN_ASSIGN(const Layout layout, LayoutOf(request));
  FIRN_ASSIGN(const ComposeRequest fields, ReadComposeRequest(request));
  if (!fields.tick && !fields.time) return Invalid("neither time_ms nor ticks is given");
  FIRN_ASSIGN(const int64_t id, Compose(fields, layout, backend_.SplitOf(layout), IdFields{}));
  return IdJson(id);
}

Result<Json> NativeHandler::TimeOf(const HttpRequest& request, std::string_view part) const {
  FIRN_ASSIGN(const int64_t ticks, NumberInPath(part));
  FIRN_ASSIGN(const Layout layout, LayoutOf(request));
  FIRN_ASSIGN(const WallMs time, TimeOfTick(layout, ticks));
  return Json{{"ticks", ticks},
              {"layout", std::string(layout.text())},
              {"time", FormatRfc3339(time)},
              {"time_ms", time.ms()}};
}

}  // namespace

std::unique_ptr<HttpHandler> MakeNativeHandler(const Backend& backend, IdDesk& desk) {
  return std::make_unique<NativeHandler>(backend, desk);
}

}  // namespace firn::front
