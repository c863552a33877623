#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "common/json/json.h"
#include "common/time/civil_time.h"
#include "server/front/desk/lease_calls.h"
#include "server/front/desk/status_cache.h"
#include "server/front/http/admin_guard.h"
#include "server/front/http/http_asker.h"
#include "server/front/http/http_handlers.h"
#include "server/front/http/http_refusal.h"

namespace firn::front {
namespace {

constexpr std::string_view kPath = "/v1/leases";

Json TermsJson(const LeaseGrant& terms) {
  const Layout& layout = terms.layout;
  return Json{{"lease", terms.lease},
              {"number", terms.number},
              {"machine_id", terms.machine.value()},
              {"worker", terms.worker},
              {"rack", terms.rack},
              {"base_bits", std::to_string(terms.base_bits)},
              {"tick_shift", layout.time().shift},
              {"sequence_shift", layout.sequence().shift},
              {"sequence_bits", layout.sequence().width},
              {"sequence_from", terms.sequence_from},
              {"sequence_count", terms.sequence_count},
              {"tick_ms", layout.tick_ms()},
              {"epoch_ms", layout.epoch().ms()},
              {"from_tick", terms.from.count()},
              {"until_tick", terms.until.count()},
              {"renew_in_ms", terms.renew_in.count()},
              {"ending", terms.ending},
              {"server", terms.server}};
}

void Tell(const LeaseGrant& grant, bool is_new, HttpAnswer& answer) {
  answer.status = is_new ? 201 : 200;
  answer.content_type = HttpAnswer::kJson;
  answer.body = JsonText(TermsJson(grant));
}

void Tell(const Refusal& refusal, HttpAnswer& answer) {
  AnswerRefusal(refusal, answer);
  // With leases, kRejected means a missing right, not a rate limit.
  if (refusal.reason == Reason::kRejected) answer.status = 403;
}

void Tell(const LeaseRefusal& refusal, HttpAnswer& answer) {
  Json error{{"reason", refusal.name},
             {"message", refusal.message},
             {"retry_after_ms", 0},
             {"another_server_may_help", refusal.name == "NO_LEASES"}};
  if (!refusal.server.empty()) error["server"] = refusal.server;
  answer.status = refusal.http_status;
  answer.content_type = HttpAnswer::kJson;
  answer.body = JsonText({{"error", std::move(error)}});
}

void Tell(const LeaseResult& result, bool is_new, HttpAnswer& answer) {
  if (const auto* grant = std::get_if<LeaseGrant>(&result)) {
    Tell(*grant, is_new, answer);
  } else if (const auto* refusal = std::get_if<Refusal>(&result)) {
    Tell(*refusal, answer);
  } else if (const auto* fault = std::get_if<LeaseRefusal>(&result)) {
    Tell(*fault, answer);
  } else {
    answer.status = 204;
  }
}

// Read the parameters of the three calls; LeaseCalls checks them. kInvalid: one cannot be read.

Result<std::string> TextIn(const HttpRequest& request, std::string_view name) {
  FIRN_ASSIGN(auto text, request.Parameter(name));
  return std::move(text).value_or("");
}

Result<WallMs> ClockIn(const HttpRequest& request) {
  FIRN_ASSIGN(const auto ms, request.Number("clock_ms"));
  if (!ms) return Invalid("clock_ms is missing");
  return WallMs(*ms);
}

Result<std::optional<Milliseconds>> AheadIn(const HttpRequest& request) {
  FIRN_ASSIGN(const auto ms, request.Number("ahead_ms"));
  return ms ? std::optional(Milliseconds(*ms)) : std::nullopt;
}

Result<LeaseCall> ReadAsk(const HttpRequest& request) {
  LeaseAsk ask;
  FIRN_TRY(request.TakesOnly({"token", "name", "ahead_ms", "rack", "clock_ms"}));
  FIRN_ASSIGN(ask.token, TextIn(request, "token"));
  FIRN_ASSIGN(ask.name, TextIn(request, "name"));
  FIRN_ASSIGN(ask.ahead, AheadIn(request));
  FIRN_ASSIGN(const auto rack, request.Unsigned("rack"));
  if (rack) ask.rack = static_cast<uint32_t>(std::min<uint64_t>(*rack, UINT32_MAX));
  FIRN_ASSIGN(ask.clock, ClockIn(request));
  return LeaseCall(std::move(ask));
}

Result<LeaseCall> ReadRenewal(const HttpRequest& request, std::string lease) {
  LeaseRenewal renewal{.lease = std::move(lease)};
  FIRN_TRY(request.TakesOnly({"turn", "acknowledged", "ahead_ms", "clock_ms"}));
  FIRN_ASSIGN(renewal.turn, TextIn(request, "turn"));
  FIRN_ASSIGN(renewal.acknowledged, TextIn(request, "acknowledged"));
  FIRN_ASSIGN(renewal.ahead, AheadIn(request));
  FIRN_ASSIGN(renewal.clock, ClockIn(request));
  return LeaseCall(std::move(renewal));
}

Result<LeaseCall> ReadEnd(const HttpRequest& request, std::string lease) {
  LeaseEnd end{.lease = std::move(lease)};
  FIRN_TRY(request.TakesOnly({"turn", "used_tick"}));
  FIRN_ASSIGN(end.turn, TextIn(request, "turn"));
  FIRN_ASSIGN(const auto used, request.Number("used_tick"));
  if (used) end.used = Tick(*used);
  return LeaseCall(std::move(end));
}

class LeaseHandler final : public HttpHandler {
 public:
  LeaseHandler(const Backend& backend, LeaseDesk& leases) : leases_(backend, &leases) {}

  Outcome Handle(const HttpRequest& request, DoorCall& door, HttpAnswer& answer) override {
    const bool all = request.path == kPath;
    const auto one = Behind("/v1/leases/", request.path);
    // The admin side serves the list.
    if (!one && (!all || request.verb == HttpVerb::kGet)) return Outcome::kNotMine;
    answer.no_store = true;
    const bool permitted = one ? request.verb == HttpVerb::kPut || request.verb == HttpVerb::kDelete
                               : request.verb == HttpVerb::kPost;
    if (!permitted) {
      answer.SetNotAllowed(one ? "PUT, DELETE" : "POST");
      return Outcome::kAnswered;
    }
    LeaseCalls::Waiting waiting;
    const auto result = leases_.Ask(waiting, door, [&] { return Read(request, one); });
    return Finish(result, std::move(waiting), all, answer);
  }

 private:
  Outcome Finish(const std::optional<LeaseResult>& result, LeaseCalls::Waiting waiting, bool is_new,
                 HttpAnswer& answer) {
    if (result) {
      Tell(*result, is_new, answer);
      return Outcome::kAnswered;
    }
    return Park({.retry =
                     [this, waiting = std::move(waiting), is_new](DoorCall& door, HttpAnswer& to) {
                       return Finish(LeaseCalls::Continue(*waiting, door), waiting, is_new, to);
                     },
                 .again = StatusCache::kAskAgain,
                 .patience_ms = LeaseCalls::kPatienceMs});
  }

  static Result<LeaseCall> Read(const HttpRequest& request, std::optional<std::string_view> lease) {
    std::string form;
    FIRN_ASSIGN(const HttpRequest same, request.WithForm(form));
    if (!lease) return ReadAsk(same);
    FIRN_ASSIGN(std::string id, DecodePathPart(*lease));
    return same.verb == HttpVerb::kPut ? ReadRenewal(same, std::move(id))
                                       : ReadEnd(same, std::move(id));
  }

  LeaseCalls leases_;
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
    if (!one.client.empty()) json["client"] = one.client;
    if (!one.trouble.empty()) json["trouble"] = one.trouble;
    list.push_back(std::move(json));
  }
  return {{"leases", std::move(list)}};
}

class LeaseListHandler final : public HttpHandler {
 public:
  LeaseListHandler(LeaseDesk& leases, std::vector<std::string> hosts)
      : leases_(leases), guard_(std::move(hosts)) {}

  Outcome Handle(const HttpRequest& request, DoorCall&, HttpAnswer& answer) override {
    if (request.path != kPath) return Outcome::kNotMine;
    answer.for_admins = answer.no_store = true;
    if (guard_.Refuses(request, answer)) return Outcome::kAnswered;
    if (request.verb != HttpVerb::kGet) {
      answer.SetNotAllowed("GET");
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
