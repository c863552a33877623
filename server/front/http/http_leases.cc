#include <optional>
#include <string>
#include <utility>

#include "common/base/cat.h"
#include "common/json/json.h"
#include "common/time/civil_time.h"
#include "server/front/http/admin_guard.h"
#include "server/front/http/http_asker.h"
#include "server/front/http/http_handlers.h"
#include "server/front/http/http_refusal.h"

namespace firn::front {
namespace {

constexpr std::string_view kPath = "/v1/leases";
constexpr std::string_view kLeaseRight = "@lease";
constexpr int64_t kPatienceMs = 5'000;  // a claim needs several answers of the registry
constexpr int32_t kRepeatInMs = 200;

// A call whose answer has not come yet, kept with its connection.
struct LeaseWait final : DoorSession {
  std::shared_ptr<const LeaseAnswer> answer;
};

struct Shape {
  int status;
  std::string_view reason;
};

Shape ShapeOf(LeaseVerdict verdict) {
  switch (verdict) {
    case LeaseVerdict::kGranted:
      return {200, "GRANTED"};
    case LeaseVerdict::kEnded:
      return {204, "ENDED"};
    case LeaseVerdict::kBadRequest:
      return {400, "BAD_REQUEST"};
    case LeaseVerdict::kUnknown:
      return {404, "UNKNOWN_LEASE"};
    case LeaseVerdict::kOutdated:
      return {409, "OUTDATED"};
    case LeaseVerdict::kRevoked:
      return {410, "REVOKED"};
    case LeaseVerdict::kElsewhere:
      return {421, "ANOTHER_SERVERS"};
    case LeaseVerdict::kLater:
      return {503, "NOT_READY"};
    case LeaseVerdict::kRefused:
      return {503, "NO_LEASES"};
  }
  return {500, "INTERNAL"};
}

Json TermsJson(const LeaseTerms& terms, const Layout& layout, const std::string& server) {
  return Json{{"lease", terms.lease},
              {"number", terms.number},
              {"machine_id", terms.machine.value()},
              {"worker", terms.worker},
              {"rack", terms.rack},
              {"base_bits", std::to_string(layout.BaseBits(terms.machine, 0))},
              {"tick_shift", layout.time().shift},
              {"sequence_shift", layout.sequence().shift},
              {"sequence_bits", layout.sequence().width},
              {"sequence_from", 0},
              {"sequence_count", layout.ids_per_tick()},
              {"tick_ms", layout.tick_ms()},
              {"epoch_ms", layout.epoch().ms()},
              {"from_tick", terms.from.count()},
              {"until_tick", terms.until.count()},
              {"renew_in_ms", terms.renew_in.count()},
              {"ending", terms.ending},
              {"server", server}};
}

void TellRefusal(Shape shape, const LeaseReply& reply, HttpAnswer& answer) {
  const auto retry_ms = static_cast<int32_t>(reply.retry_after.count());
  Json error{{"reason", shape.reason},
             {"message", reply.message},
             {"retry_after_ms", retry_ms},
             {"another_server_may_help", shape.status == 503}};
  if (!reply.server.empty()) error["server"] = reply.server;
  answer.status = shape.status;
  answer.content_type = HttpAnswer::kJson;
  answer.retry_after_ms = retry_ms;
  Json object = Json::object();
  object["error"] = std::move(error);
  answer.body = JsonText(object);
}

void TellRefusal(const LeaseReply& reply, HttpAnswer& answer) {
  TellRefusal(ShapeOf(reply.verdict), reply, answer);
}

// Of a call that never came to the desk.
void TellFault(const Status& fault, HttpAnswer& answer) {
  const LeaseReply reply{.verdict = LeaseVerdict::kBadRequest, .message = fault.message()};
  if (fault.code() != Code::kDenied) return TellRefusal(reply, answer);
  TellRefusal(Shape{403, "REJECTED"}, reply, answer);
}

// The parameters of the three calls. kInvalid names the fault.

Result<std::string> Required(const HttpRequest& request, std::string_view name) {
  FIRN_ASSIGN(auto text, request.Parameter(name));
  if (!text || text->empty()) return Invalid(Cat(name, " is missing"));
  return *std::move(text);
}

Result<int64_t> RequiredNumber(const HttpRequest& request, std::string_view name) {
  FIRN_ASSIGN(const auto number, request.Number(name));
  if (!number) return Invalid(Cat(name, " is missing"));
  return *number;
}

// Times that no clock shows would overflow sums.
Result<WallMs> ClockIn(const HttpRequest& request) {
  FIRN_ASSIGN(const int64_t ms, RequiredNumber(request, "clock_ms"));
  if (!InCalendar(WallMs(ms))) return Invalid("clock_ms is not a time of this calendar");
  return WallMs(ms);
}

Result<Milliseconds> AheadIn(const HttpRequest& request, Milliseconds usual) {
  FIRN_ASSIGN(const auto ms, request.Unsigned("ahead_ms"));
  constexpr uint64_t kDayMs = 86'400'000;
  if (ms.value_or(0) > kDayMs) return Invalid("ahead_ms is more than a day");
  return ms ? Milliseconds(static_cast<int64_t>(*ms)) : usual;
}

Result<LeaseCall> ReadAsk(const HttpRequest& request) {
  LeaseAsk ask;
  FIRN_TRY(request.TakesOnly({"token", "name", "ahead_ms", "rack", "clock_ms"}));
  FIRN_ASSIGN(ask.token, Required(request, "token"));
  FIRN_ASSIGN(ask.name, Required(request, "name"));
  FIRN_ASSIGN(ask.ahead, AheadIn(request, ask.ahead));
  FIRN_ASSIGN(const auto rack, request.Unsigned("rack"));
  if (rack.value_or(0) > UINT16_MAX) return Invalid("there is no such rack");
  if (rack) ask.rack = static_cast<uint32_t>(*rack);
  FIRN_ASSIGN(ask.clock, ClockIn(request));
  return LeaseCall(std::move(ask));
}

Result<LeaseCall> ReadRenewal(const HttpRequest& request, std::string lease) {
  LeaseRenewal renewal{.lease = std::move(lease)};
  FIRN_TRY(request.TakesOnly({"turn", "acknowledged", "ahead_ms", "clock_ms"}));
  FIRN_ASSIGN(renewal.turn, Required(request, "turn"));
  FIRN_ASSIGN(auto acknowledged, request.Parameter("acknowledged"));
  renewal.acknowledged = std::move(acknowledged).value_or("");
  FIRN_ASSIGN(renewal.ahead, AheadIn(request, renewal.ahead));
  FIRN_ASSIGN(renewal.clock, ClockIn(request));
  return LeaseCall(std::move(renewal));
}

Result<LeaseCall> ReadEnd(const HttpRequest& request, std::string lease) {
  LeaseEnd end{.lease = std::move(lease)};
  FIRN_TRY(request.TakesOnly({"turn", "used_tick"}));
  FIRN_ASSIGN(auto turn, request.Parameter("turn"));
  end.turn = std::move(turn).value_or("");
  FIRN_ASSIGN(const auto used, request.Number("used_tick"));
  // A program that has used nothing reports the tick before its first.
  if (used && (*used < -1 || *used > INT64_MAX / 2)) return Invalid("used_tick is not a tick");
  if (used) end.used = Tick(*used);
  return LeaseCall(std::move(end));
}

class LeaseHandler final : public HttpHandler {
 public:
  LeaseHandler(const Backend& backend, LeaseDesk& leases) : backend_(backend), leases_(leases) {
    if (backend.rights != nullptr) rights_.emplace(*backend.rights);
  }

  Outcome Handle(const HttpRequest& request, DoorCall& door, HttpAnswer& answer) override {
    const bool all = request.path == kPath;
    const auto one = Behind("/v1/leases/", request.path);
    // The list is the admin side's.
    if (!one && (!all || request.verb == HttpVerb::kGet)) return Outcome::kNotMine;
    answer.no_store = true;
    if (all && request.verb != HttpVerb::kPost) return NotAllowed("POST", answer);
    if (one && request.verb != HttpVerb::kPut && request.verb != HttpVerb::kDelete) {
      return NotAllowed("PUT, DELETE", answer);
    }
    // Taken out: a failure must not leave it to the connection's next request.
    auto session = std::move(door.session);
    auto* const wait = dynamic_cast<LeaseWait*>(session.get());
    std::shared_ptr<const LeaseAnswer> pending = wait != nullptr ? wait->answer : nullptr;
    if (pending == nullptr) {
      Result<LeaseCall> call = Read(request, one, door);
      if (!call.ok()) {
        TellFault(call.status(), answer);
        return Outcome::kAnswered;
      }
      pending = leases_.Call(*std::move(call));
    }
    const LeaseReply* const reply = pending->Get();
    if (reply == nullptr && !door.last) {
      auto kept = std::make_unique<LeaseWait>();
      kept->answer = std::move(pending);
      door.session = std::move(kept);
      answer.patience_ms = kPatienceMs;
      return Outcome::kPark;
    }
    Tell(reply, all, answer);
    return Outcome::kAnswered;
  }

 private:
  Result<LeaseCall> Read(const HttpRequest& request, std::optional<std::string_view> lease,
                         const DoorCall& door) {
    if (rights_ && !rights_->Permit(door.names, door.user, kLeaseRight)) {
      return Denied(
          Cat("this client has no right to lease machine ids; --rights_file must give it ",
              kLeaseRight));
    }
    std::string form;
    FIRN_ASSIGN(const HttpRequest same, request.WithForm(form));
    if (!lease) return ReadAsk(same);
    FIRN_ASSIGN(std::string id, DecodePathPart(*lease));
    return same.verb == HttpVerb::kPut ? ReadRenewal(same, std::move(id))
                                       : ReadEnd(same, std::move(id));
  }

  void Tell(const LeaseReply* reply, bool asked, HttpAnswer& answer) const {
    if (reply == nullptr) {
      return TellRefusal({.verdict = LeaseVerdict::kLater,
                          .message = "no answer yet; repeat the request",
                          .retry_after = Milliseconds(kRepeatInMs)},
                         answer);
    }
    if (reply->verdict == LeaseVerdict::kEnded) {
      answer.status = 204;
    } else if (reply->verdict == LeaseVerdict::kGranted) {
      answer.status = asked ? 201 : 200;
      answer.content_type = HttpAnswer::kJson;
      answer.body = JsonText(TermsJson(reply->terms, backend_.view.layout(), reply->server));
    } else {
      TellRefusal(*reply, answer);
    }
  }

  static Outcome NotAllowed(std::string_view allowed, HttpAnswer& answer) {
    answer.SetText(405, allowed);
    answer.body += '\n';
    answer.allow = allowed;
    return Outcome::kAnswered;
  }

  const Backend& backend_;
  LeaseDesk& leases_;
  std::optional<TagRights::Reader> rights_{};
};

Json ListJson(const LeaseDesk& leases) {
  Json list = Json::array();
  for (const LeaseShown& one : leases.List()) {
    Json json{{"number", one.number},
              {"name", one.name},
              {"machine_id", one.machine.value()},
              {"worker", one.worker},
              {"rack", one.rack},
              {"from", FormatRfc3339(one.from)},
              {"until", FormatRfc3339(one.until)},
              {"until_ms", one.until.ms()},
              {"bound_ms", one.bound.ms()},
              {"ending", one.ending}};
    if (!one.trouble.empty()) json["trouble"] = one.trouble;
    list.push_back(std::move(json));
  }
  Json object = Json::object();
  object["leases"] = std::move(list);
  return object;
}

class LeaseListHandler final : public HttpHandler {
 public:
  LeaseListHandler(LeaseDesk& leases, std::vector<std::string> hosts)
      : leases_(leases), guard_(std::move(hosts)) {}

  Outcome Handle(const HttpRequest& request, DoorCall&, HttpAnswer& answer) override {
    if (request.path != kPath) return Outcome::kNotMine;
    answer.for_admins = answer.no_store = true;
    if (const std::string why = guard_.WhyNot(request); !why.empty()) {
      answer.SetText(403, why + "\n");
    } else if (request.verb != HttpVerb::kGet) {
      answer.SetText(405, "GET\n");
      answer.allow = "GET";
    } else if (const Status known = request.TakesOnly({}); !known.ok()) {
      AnswerBad(known, answer);
    } else {
      answer.content_type = HttpAnswer::kJson;
      answer.body = JsonText(ListJson(leases_), 2) + "\n";
    }
    return Outcome::kAnswered;
  }

 private:
  LeaseDesk& leases_;
  const AdminGuard guard_;
};

}  // namespace

std::unique_ptr<HttpHandler> MakeLeaseHandler(const Backend& backend, LeaseDesk& leases) {
  return std::make_unique<LeaseHandler>(backend, leases);
}

std::unique_ptr<HttpHandler> MakeLeaseListHandler(LeaseDesk& leases,
                                                  std::vector<std::string> hosts) {
  return std::make_unique<LeaseListHandler>(leases, std::move(hosts));
}

}  // namespace firn::front
