#include <utility>

#include "common/json/json.h"
#include "common/time/civil_time.h"
#include "server/front/http/admin_guard.h"
#include "server/front/http/http_asker.h"
#include "server/front/http/http_fields.h"
#include "server/front/http/http_handlers.h"
#include "server/front/http/http_refusal.h"

namespace firn::front {
namespace {

Json TagsJson(const ServerReport& report, const DeskCounters::Sums& sums) {
  Json tags = Json::array();
  for (const TagReport& tag : report.tags) {
    Json json{{"tag", tag.tag}, {"strategy", tag.strategy}};
    if (tag.high) json["high"] = std::to_string(*tag.high);
    if (tag.supply) json["supply"] = *tag.supply;
    if (tag.supply_seconds) json["supply_seconds"] = *tag.supply_seconds;
    if (tag.step) json["step"] = *tag.step;
    if (!tag.trouble.empty()) json["trouble"] = tag.trouble;
    if (!tag.owner.empty()) json["owner"] = tag.owner;
    if (tag.owner_since != WallMs()) json["owner_since"] = FormatRfc3339(tag.owner_since);
    if (!tag.outdated.empty()) json["outdated"] = tag.outdated;
    if (tag.ledger_since) json["ledger_since"] = FormatRfc3339(*tag.ledger_since);
    if (tag.ledger_numbers > 0) json["ledger_numbers"] = tag.ledger_numbers;
    const auto issued = sums.issued.find(tag.tag);
    json["issued"] = issued == sums.issued.end() ? 0 : issued->second;
    tags.push_back(std::move(json));
  }
  return tags;
}

Json RefusedTagsJson(const ServerReport& report) {
  Json tags = Json::array();
  for (const RefusedTagReport& tag : report.refused_tags) {
    tags.push_back({{"tag", tag.tag},
                    {"state", tag.state},
                    {"reason", ReasonName(tag.reason)},
                    {"why", tag.why}});
  }
  return tags;
}

Json RefusedJson(const DeskCounters::Calls& calls) {
  Json refused = Json::object();
  for (int i = 0; i < kReasons; ++i) {
    const auto reason = static_cast<Reason>(i);
    refused[std::string(ReasonName(reason))] = calls.refused[static_cast<size_t>(i)];
  }
  return refused;
}

// The protocols that the public port serves.
Json ProtocolsJson(const DeskCounters::Sums& sums) {
  Json protocols = Json::array();
  sums.protocols.ForEach([&](ProtocolKind kind, const DeskCounters::OfProtocol& one) {
    if (!one.served) return;
    protocols.push_back({{"protocol", std::string(ProtocolName(kind))},
                         {"connections", one.connections},
                         {"calls", one.calls},
                         {"refused", RefusedJson(one)}});
  });
  return protocols;
}

Json RegistryJson(const RegistryReport& registry) {
  Json json{{"claim", registry.claim},
            {"connected", registry.connected},
            {"session_age_ms", registry.session_age.count()},
            {"renewals", registry.renewals},
            {"renewals_failed", registry.renewals_failed},
            {"clock_behind_ms", registry.clock_behind.count()},
            {"clock_steps_forward", registry.clock_steps_forward},
            {"clock_steps_back", registry.clock_steps_back}};
  if (!registry.clock_trouble.empty()) {
    json["clock_trouble"] = registry.clock_trouble;
    json["clock_off_ms"] = registry.clock_off.count();
  }
  return json;
}

Json MachinesJson(const ServerReport& report, const RackSplit& split) {
  Json machines = Json::array();
  for (const MachineReport& one : report.machines) {
    Json json{{"claim", one.claim}};
    if (one.machine) {
      json["machine"] = one.machine->value();
      json["worker"] = split.WorkerOf(*one.machine);
      json["rack"] = split.RackOf(*one.machine);
      json["bound_ms"] = one.bound.ms();
      json["bound_in_ms"] = one.bound_left.count();
    }
    if (!one.trouble.empty()) json["trouble"] = one.trouble;
    machines.push_back(std::move(json));
  }
  return machines;
}

Json CertificatesJson(const std::vector<CertificateReport>& certificates, WallMs now) {
  Json json = Json::array();
  for (const CertificateReport& one : certificates) {
    Json shown{{"door", one.door},
               {"expires", FormatRfc3339(one.expiry.certificate)},
               {"expires_in_s", (one.expiry.certificate - now).count() / 1000}};
    if (const std::optional<WallMs> end = one.expiry.client_ca) {
      shown["client_ca_expires"] = FormatRfc3339(*end);
      shown["client_ca_expires_in_s"] = (*end - now).count() / 1000;
    }
    json.push_back(std::move(shown));
  }
  return json;
}

Json ReloadJson(const ReloadReport& report) {
  Json files = Json::array();
  for (const ReloadedFile& file : report.files) {
    files.push_back({{"flag", file.flag}, {"path", file.path}, {"result", file.outcome_name()}});
  }
  Json json{{"time", FormatRfc3339(report.at)}, {"files", std::move(files)}};
  json["faults"] = report.faults;
  return json;
}

Json StatusJson(const Backend& backend, const StatusCache::Snapshot& snapshot) {
  const ServerReport& report = snapshot.report;
  const Layout& layout = backend.view.layout();
  const RackSplit split = backend.view.rack_split();
  const DeskCounters::Sums& sums = snapshot.sums;
  Json json{{"state", PhaseName(report.phase)},
            {"cluster_uuid", report.cluster_uuid},
            {"cluster_name", report.cluster_name},
            {"application", report.application},
            {"address", report.address},
            {"layout", std::string(layout.text())},
            {"layout_ends", FormatRfc3339(layout.end())},
            {"rack_bits", split.rack_bits()},
            {"machine_bits", layout.machine().width}};
  if (report.machine) {
    json["machine"] = report.machine->value();
    json["worker"] = split.WorkerOf(*report.machine);
    json["rack"] = split.RackOf(*report.machine);
  }
  json["machines"] = MachinesJson(report, split);
  if (report.bound) {
    json["bound"] = FormatRfc3339(*report.bound);
    json["bound_ms"] = report.bound->ms();  // as `firn restore --set=floor=` takes it
    if (report.bound_left) json["bound_in_ms"] = report.bound_left->count();
  }
  if (!report.registry.trouble.empty()) {
    json["trouble"] = report.registry.trouble;
    json["trouble_urgency"] = UrgencyName(report.registry.urgency);
  }
  json["registry"] = RegistryJson(report.registry);
  json["frozen"] = report.frozen;
  json["overloaded"] = report.overloaded;
  if (!report.root_trouble.empty()) json["root_trouble"] = report.root_trouble;
  json["sequencer"] = report.sequencer;
  json["time"] = FormatRfc3339(report.wall);
  json["started"] = FormatRfc3339(report.started);
  if (report.clock_skew) json["clock_skew_ms"] = report.clock_skew->count();
  json["certificates"] = CertificatesJson(backend.certificates(), report.wall);
  if (const auto reload = backend.last_reload()) json["last_reload"] = ReloadJson(*reload);
  json["calls"] = sums.calls;
  json["refused"] = RefusedJson(sums);
  json["protocols"] = ProtocolsJson(sums);
  json["tags"] = TagsJson(report, sums);
  json["refused_tags"] = RefusedTagsJson(report);
  json["refused_tags_count"] = report.refused_tags_count;
  json["version"] = report.version;
  json["build"] = report.build;
  return json;
}

class AdminHandler final : public HttpHandler {
 public:
  AdminHandler(const Backend& backend, ServerControl& control, std::function<std::string()> metrics,
               std::vector<std::string> hosts)
      : backend_(backend),
        control_(control),
        metrics_(std::move(metrics)),
        guard_(std::move(hosts)) {}

  Outcome Handle(const HttpRequest& request, DoorCall& door, HttpAnswer& answer) override {
    const Outcome outcome = Answer(request, door, answer);
    answer.for_admins = outcome == Outcome::kAnswered;
    return outcome;
  }

 private:
  using Writer = void (AdminHandler::*)(HttpAnswer&);

  Outcome Answer(const HttpRequest& request, DoorCall& door, HttpAnswer& answer) {
    if (request.path == "/v1/offline" || request.path == "/v1/online") {
      return Steer(request, answer);
    }
    const auto id = Behind("/v1/explain/", request.path);
    const auto write = WriterOf(request.path);
    const bool status = request.path == "/v1/status";
    if (write == nullptr && !id && !status && request.path != "/readyz") return Outcome::kNotMine;
    if (guard_.Refuses(request, answer)) return Outcome::kAnswered;
    if (request.path == "/readyz") return IsReady(request, answer);
    if (request.verb != HttpVerb::kGet) return NotAllowed("GET", answer);
    if (id) return ExplainIt(request, *id, answer);
    if (status) return Tell(request, door, answer);
    answer.no_store = true;
    // Monitors and load balancers may add parameters.
    const Status known = request.path.starts_with("/v1/") ? request.TakesOnly({}) : Status();
    if (!known.ok()) {
      AnswerBad(known, answer);
      return Outcome::kAnswered;
    }
    (this->*write)(answer);
    return Outcome::kAnswered;
  }

  static Writer WriterOf(std::string_view path) {
    if (path == "/healthz") return &AdminHandler::Health;
    if (path == "/metrics") return &AdminHandler::Metrics;
    if (path == "/v1/knowledge") return &AdminHandler::Knowledge;
    return nullptr;
  }

  void Health(HttpAnswer& answer) { answer.SetText(200, "ok\n"); }

  // The first line is the state. With NOT_READY, the second is the reason.
  Outcome IsReady(const HttpRequest& request, HttpAnswer& answer) const {
    if (request.verb != HttpVerb::kGet) return NotAllowed("GET", answer);
    const Status known = request.TakesOnly({"tag"});
    const Result<std::optional<std::string>> tag = request.Parameter("tag");
    if (!known.ok() || !tag.ok()) {
      AnswerBad(known.ok() ? tag.status() : known, answer);
      return Outcome::kAnswered;
    }
    ServerPhase phase = backend_.view.phase();
    std::string why = backend_.view.why_not_ready();
    if (*tag && (phase == ServerPhase::kReady || phase == ServerPhase::kNotReady)) {
      const std::optional<Refusal> refusal = backend_.issuer.WhyNot(**tag);
      why = refusal ? refusal->message : backend_.view.why_no_tag_is_ready();
      phase = refusal || !why.empty() ? ServerPhase::kNotReady : ServerPhase::kReady;
    }
    answer.SetText(phase == ServerPhase::kReady ? 200 : 503, PhaseName(phase));
    answer.body += '\n';
    if (phase == ServerPhase::kNotReady && !why.empty()) answer.body += why + '\n';
    answer.no_store = true;
    return Outcome::kAnswered;
  }

  Outcome Tell(const HttpRequest& request, DoorCall& door, HttpAnswer& answer) {
    if (const Status known = request.TakesOnly({}); !known.ok()) {
      AnswerBad(known, answer);
      return Outcome::kAnswered;
    }
    return TellStatus(door, answer);
  }

  Outcome TellStatus(DoorCall& door, HttpAnswer& answer) {
    std::shared_ptr<const StatusCache::Snapshot> snapshot = backend_.status.GetNew(door);
    if (snapshot == nullptr) {
      return Park({.retry = [this](DoorCall& same, HttpAnswer& to) { return TellStatus(same, to); },
                   .again = StatusCache::kAskAgain});
    }
    if (snapshot != text_of_) {
      text_ = JsonText(StatusJson(backend_, *snapshot), 2) + "\n";
      text_of_ = std::move(snapshot);
    }
    answer.no_store = true;
    answer.content_type = HttpAnswer::kJson;
    answer.body = text_;
    return Outcome::kAnswered;
  }

  void Knowledge(HttpAnswer& answer) {
    answer.content_type = HttpAnswer::kJson;
    answer.body = backend_.view.knowledge();
  }

  void Metrics(HttpAnswer& answer) {
    answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
    answer.body = metrics_();
  }

  Outcome ExplainIt(const HttpRequest& request, std::string_view id, HttpAnswer& answer) const {
    Result<std::string> json = ExplainAsJson(backend_, request, id);
    if (json.ok()) {
      answer.content_type = HttpAnswer::kJson;
      answer.body = *std::move(json);
    } else {
      AnswerBad(json.status(), answer);
    }
    return Outcome::kAnswered;
  }

  Outcome Steer(const HttpRequest& request, HttpAnswer& answer) {
    if (guard_.Refuses(request, answer)) return Outcome::kAnswered;
    if (request.verb != HttpVerb::kPost) return NotAllowed("POST", answer);
    if (AdminGuard::RefusesChange(request, answer)) return Outcome::kAnswered;
    const Status done = request.path == "/v1/offline" ? control_.GoOffline() : control_.GoOnline();
    if (done.ok()) {
      answer.SetText(200, "ok\n");
    } else {
      AnswerRefusal({Reason::kNotReady, done.message(), 0, false}, answer);
    }
    return Outcome::kAnswered;
  }

  static Outcome NotAllowed(std::string_view allowed, HttpAnswer& answer) {
    answer.SetNotAllowed(allowed);
    return Outcome::kAnswered;
  }

  const Backend& backend_;
  ServerControl& control_;
  const std::function<std::string()> metrics_;
  const AdminGuard guard_;
  std::shared_ptr<const StatusCache::Snapshot> text_of_;
  std::string text_;  // of /v1/status
};

class PageGuardHandler final : public HttpHandler {
 public:
  explicit PageGuardHandler(std::vector<std::string> hosts) : guard_(std::move(hosts)) {}

  Outcome Handle(const HttpRequest& request, DoorCall&, HttpAnswer& answer) override {
    return guard_.Refuses(request, answer) ? Outcome::kAnswered : Outcome::kNotMine;
  }

 private:
  const PageGuard guard_;
};

class GuardHandler final : public HttpHandler {
 public:
  explicit GuardHandler(std::vector<std::string> hosts) : guard_(std::move(hosts)) {}

  Outcome Handle(const HttpRequest& request, DoorCall&, HttpAnswer& answer) override {
    if (!guard_.Refuses(request, answer)) return Outcome::kNotMine;
    answer.for_admins = true;
    return Outcome::kAnswered;
  }

 private:
  const AdminGuard guard_;
};

}  // namespace

std::unique_ptr<HttpHandler> MakePageGuardHandler(std::vector<std::string> hosts) {
  return std::make_unique<PageGuardHandler>(std::move(hosts));
}

std::unique_ptr<HttpHandler> MakeGuardHandler(std::vector<std::string> hosts) {
  return std::make_unique<GuardHandler>(std::move(hosts));
}

std::unique_ptr<HttpHandler> MakeAdminHandler(const Backend& backend, ServerControl& control,
                                              std::function<std::string()> metrics,
                                              std::vector<std::string> hosts) {
  return std::make_unique<AdminHandler>(backend, control, std::move(metrics), std::move(hosts));
}

}  // namespace firn::front
