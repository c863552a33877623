#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "common/base/cat.h"
#include "common/id/explain.h"
#include "common/json/json_object.h"
#include "common/time/civil_time.h"
#include "server/front/desk/vesta_ids.h"
#include "server/front/http/http_asker.h"
#include "server/front/http/http_handlers.h"
#include "server/front/http/http_refusal.h"

namespace firn::front {
namespace {

// "Fri May 22 14:41:04 UTC 2015", the form of Java's Date.toString().
std::string JavaDate(WallMs time) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const CivilTime at = CivilAt(time);
  const std::chrono::weekday day{std::chrono::sys_days(at.date)};
  char text[48];
  std::snprintf(text, sizeof text, "%s %s %02u %02d:%02d:%02d UTC %04d", kDays[day.c_encoding()],
                kMonths[static_cast<unsigned>(at.date.month()) - 1],
                static_cast<unsigned>(at.date.day()), at.hour, at.minute, at.second,
                static_cast<int>(at.date.year()));
  return text;
}

class VestaHandler final : public HttpAsker {
 public:
  using HttpAsker::HttpAsker;

  Outcome Handle(const HttpRequest& request, DoorCall& door, HttpAnswer& answer) override {
    constexpr std::array<std::string_view, 4> kPaths{"/genid", "/expid", "/transtime", "/makeid"};
    if (std::find(kPaths.begin(), kPaths.end(), request.path) == kPaths.end()) {
      return Outcome::kNotMine;
    }
    if (WrongVerb(request, answer)) return Outcome::kAnswered;
    if (request.path == "/genid") return AskPlain(request, {}, door, answer);
    if (request.path == "/expid") return Say(ExplainIt(request), HttpAnswer::kJson, answer);
    if (request.path == "/transtime") return Say(TransTime(request), HttpAnswer::kText, answer);
    return Say(MakeIt(request), HttpAnswer::kText, answer);
  }

 private:
  void No(const Refusal& refusal, HttpAnswer& answer) override {
    const bool asks_wrong =
        refusal.reason == Reason::kBadRequest || refusal.reason == Reason::kUnknownTag;
    answer.SetText(asks_wrong ? HttpStatusOf(refusal.reason) : 503, refusal.message);
    answer.retry_after_ms = refusal.retry_after_ms;
  }

  Outcome Say(const Result<std::string>& text, std::string_view type, HttpAnswer& answer) {
    if (!text.ok()) return Bad(text.status(), answer);
    answer.content_type = type;
    answer.body = text.value_or({});
    return Outcome::kAnswered;
  }

  static Result<int64_t> Need(const HttpRequest& request, std::string_view name) {
    FIRN_ASSIGN(const auto number, request.Number(name));
    if (!number) return Invalid(Cat(name, " is missing"));
    return *number;
  }

  Result<std::string> ExplainIt(const HttpRequest& request) const {
    FIRN_ASSIGN(const int64_t id, Need(request, "id"));
    FIRN_ASSIGN(const IdFields fields, backend_.view.layout().Unpack(id));
    const std::pair<const char*, uint64_t> members[] = {
        {"genMethod", fields.method.value_or(0)},
        {"machine", fields.machine.value()},
        {"seq", fields.sequence},
        {"time", static_cast<uint64_t>(fields.tick.count())},
        {"type", fields.type.value_or(0)},
        {"version", fields.version.value_or(0)}};
    JsonWriter json;
    for (const auto& [name, value] : members) json.Number(name, static_cast<int64_t>(value));
    return json.Done();
  }

  Result<std::string> TransTime(const HttpRequest& request) const {
    FIRN_ASSIGN(const int64_t ticks, Need(request, "time"));
    FIRN_ASSIGN(const WallMs time, TimeOfTick(backend_.view.layout(), ticks));
    return JavaDate(time);
  }

  Result<std::string> MakeIt(const HttpRequest& request) const;
};

Result<std::string> VestaHandler::MakeIt(const HttpRequest& request) const {
  ComposeRequest fields;
  FIRN_ASSIGN(fields.tick, Need(request, "time"));
  FIRN_ASSIGN(const int64_t sequence, Need(request, "seq"));
  if (sequence < 0) return Invalid("seq is negative");
  fields.sequence = static_cast<uint64_t>(sequence);
  FIRN_ASSIGN(fields.machine, request.Unsigned("machine"));
  FIRN_ASSIGN(fields.method, request.Unsigned("genMethod"));
  FIRN_ASSIGN(fields.type, request.Unsigned("type"));
  FIRN_ASSIGN(fields.version, request.Unsigned("version"));
  FIRN_ASSIGN(const int64_t id, MakeVestaId(fields, backend_, Method::kHttp));
  return std::to_string(id);
}

}  // namespace

std::unique_ptr<HttpHandler> MakeVestaHandler(const Backend& backend, IdDesk& desk) {
  return std::make_unique<VestaHandler>(backend, desk);
}

}  // namespace firn::front
