#include <algorithm>

#include "common/base/cat.h"
#include "common/base/url_encoding.h"
#include "common/json/json.h"
#include "server/front/http/http_asker.h"
#include "server/front/http/http_fields.h"
#include "server/front/http/http_handlers.h"
#include "server/front/http/http_refusal.h"

namespace firn::front {
namespace {

bool IsExactInJavaScript(const IdRun& run) {
  return run.first >= 0 && run.last() < kExactInJavaScript;
}

void AppendRuns(const Runs& runs, std::string& out) {
  char before = '[';
  out += "\"runs\":";
  for (const IdRun& run : runs.runs()) {
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

class NativeHandler final : public HttpAsker {
 public:
  using HttpAsker::HttpAsker;

  Outcome Handle(const HttpRequest& request, DoorCall& door, HttpAnswer& answer) override {
    if (!request.path.starts_with("/v1/")) return Outcome::kNotMine;
    std::string form;
    const Result<HttpRequest> same = request.WithForm(form);
    if (!same.ok()) return Bad(same.status(), answer);
    return Answer(*same, door, answer);
  }

 private:
  Outcome Answer(const HttpRequest& request, DoorCall& door, HttpAnswer& answer) {
    if (const auto tag = Behind("/v1/ids/", request.path)) return Ids(request, *tag, door, answer);
    if (const auto id = Behind("/v1/explain/", request.path)) {
      return Say(ExplainAsJson(backend_, request, *id), request, answer);
    }
    if (request.path == "/v1/compose") {
      return Say(ComposeAsJson(backend_, request), request, answer);
    }
    if (const auto ticks = Behind("/v1/time/", request.path)) {
      return Say(TimeAsJson(backend_, request, *ticks), request, answer);
    }
    return Outcome::kNotMine;
  }

  void No(const Refusal& refusal, HttpAnswer& answer) override { AnswerRefusal(refusal, answer); }

  Outcome Say(Result<std::string> json, const HttpRequest& request, HttpAnswer& answer) {
    if (WrongVerb(request, answer)) return Outcome::kAnswered;
    if (!json.ok()) return Bad(json.status(), answer);
    answer.content_type = HttpAnswer::kJson;
    answer.body = *std::move(json);
    return Outcome::kAnswered;
  }

  struct Parameters {
    std::string tag;
    int64_t count = 1;
    Form form = Form::kNumbers;
  };
  Result<Parameters> ReadParameters(const HttpRequest& request, std::string_view tag) const;
  Outcome Ids(const HttpRequest& request, std::string_view tag, DoorCall& door, HttpAnswer& answer);

  // The ids of a call that are written one by one.
  struct List {
    WaitingIds call;
    bool text = false;
    bool numbers = false;  // the ids were written, and now follow as numbers
    RunsCursor at{};
  };
  Outcome Write(List list, HttpAnswer& answer);
};

Result<NativeHandler::Parameters> NativeHandler::ReadParameters(const HttpRequest& request,
                                                                std::string_view tag) const {
  Parameters parameters;
  FIRN_ASSIGN(parameters.tag, DecodePathPart(tag));
  if (request.query.empty() && request.body.empty()) return parameters;
  FIRN_TRY(request.TakesOnly({"count", "form"}));
  FIRN_ASSIGN(const auto count, request.Number("count"));
  FIRN_ASSIGN(const auto form, request.Parameter("form"));
  parameters.count = count.value_or(1);
  const std::string name = form.value_or("number");
  if (name == "text") {
    parameters.form = Form::kText;
  } else if (name == "runs") {
    parameters.form = Form::kRuns;
  } else if (name != "number") {
    return Invalid("form is '" + name + "'; it must be number, text or runs");
  }
  const bool list = parameters.form != Form::kRuns;
  const int64_t most = list ? backend_.limits.list_ids_max : kRunsIdsMax;
  if (parameters.count < 1 || parameters.count > most) {
    return Invalid(Cat("count is ", parameters.count, list ? ", a list" : ", a call", " has 1 to ",
                       most, " ids", list ? "; more come with form=runs" : ""));
  }
  return parameters;
}

NativeHandler::Outcome NativeHandler::Ids(const HttpRequest& request, std::string_view tag,
                                          DoorCall& door, HttpAnswer& answer) {
  if (WrongVerb(request, answer)) return Outcome::kAnswered;
  const auto parameters = ReadParameters(request, tag);
  if (!parameters.ok()) return Bad(parameters.status(), answer);
  const Parameters& asked = *parameters;
  return Ask(request, asked.tag, asked.count, asked.form, door, answer,
             [this, asked](const Runs& runs, HttpAnswer& to) {
               to.content_type = HttpAnswer::kJson;
               to.body += "{\"tag\":";
               AppendJsonText(to.body, desk_.NameOf(asked.tag));
               to.body += ',';
               if (asked.form == Form::kRuns) {
                 AppendRuns(runs, to.body);
                 to.body += '}';
                 return Outcome::kAnswered;
               }
               List list{.call = desk_.TakeWaiting(), .text = asked.form == Form::kText};
               to.body += list.text ? "\"texts\":[" : "\"ids\":[";
               return Write(std::move(list), to);
             });
}

// {"ids":["7","8"],"numbers":[7,8]} or {"texts":["a7","a8"]}. "numbers" only if JavaScript
// represents all of them exactly. In several turns if there are many.
NativeHandler::Outcome NativeHandler::Write(List list, HttpAnswer& answer) {
  std::string& out = answer.body;
  const Runs& runs = list.call->runs();
  const WallMs now = backend_.view.wall();
  std::string text;
  const auto append = [&](int64_t id) {
    if (out.back() != '[') out += ',';
    if (list.text) {
      text.clear();
      list.call->AppendText(id, now, text);
      AppendJsonText(out, text);
    } else if (list.numbers) {
      AppendNumber(out, id);
    } else {
      out += '"';
      AppendNumber(out, id);
      out += '"';
    }
  };
  if (list.at.ForNext(runs, IdDesk::kIdsPerTurn, append)) {
    out += ']';
    const auto all = runs.runs();
    if (list.text || list.numbers || !std::all_of(all.begin(), all.end(), IsExactInJavaScript)) {
      out += '}';
      desk_.GiveBack(std::move(list.call));
      return Outcome::kAnswered;
    }
    out += ",\"numbers\":[";
    list.numbers = true;
    list.at = {};
    if (runs.count() <= IdDesk::kIdsPerTurn) return Write(std::move(list), answer);
  }
  const size_t memory = runs.memory();
  return More({.retry = [this, list = std::move(list)](DoorCall&,
                                                       HttpAnswer& to) { return Write(list, to); },
               .memory = memory});
}

}  // namespace

std::unique_ptr<HttpHandler> MakeNativeHandler(const Backend& backend, IdDesk& desk) {
  return std::make_unique<NativeHandler>(backend, desk);
}

}  // namespace firn::front
