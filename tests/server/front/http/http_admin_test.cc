#include <gtest/gtest.h>

#include "common/base/cat.h"
#include "common/base/url_encoding.h"
#include "common/json/json.h"
#include "server/front/desk/metrics.h"
#include "server/front/http/embedded_pages.h"
#include "server/front/http/http_handlers.h"
#include "tests/server/front/issuing_fixture.h"
#include "tests/support/json_of.h"

namespace firn::front {
namespace {

class RecordingControl final : public ServerControl {
 public:
  Status GoOffline() override { return done += "offline ", outcome; }
  Status GoOnline() override { return done += "online ", outcome; }

  std::string done;
  Status outcome;
};

class HttpAdminTest : public testing::Test {
 protected:
  HttpAnswer Readyz(const std::string& tag) {
    const std::string query = "tag=" + UrlEncode(tag);
    return Ask("/readyz", HttpVerb::kGet, query);
  }
  HttpAnswer Ask(std::string_view path, HttpVerb verb = HttpVerb::kGet,
                 std::string_view query = {}) {
    return Ask(path, verb, query, "127.0.0.1:7610", "1");
  }
  HttpAnswer Ask(std::string_view path, HttpVerb verb, std::string_view query,
                 std::string_view host, std::string_view admin_word) {
    HttpRequest request;
    request.verb = verb;
    request.path = path;
    request.query = query;
    request.host = host;
    request.admin_word = admin_word;
    DoorCall door;
    HttpAnswer answer;
    EXPECT_EQ(admin_->Handle(request, door, answer), HttpHandler::Outcome::kAnswered) << path;
    return answer;
  }
  std::unique_ptr<HttpHandler> Admin() {
    return MakeAdminHandler(issuing_.backend, control_, [this] { return Metrics(); },
                            {"firn-1.example"});
  }
  // Returns the answer to a request's bytes.
  std::string Raw(std::string_view request) {
    std::vector<std::unique_ptr<HttpHandler>> handlers;
    handlers.push_back(Admin());
    const auto http = MakeHttpProtocol(nullptr, std::move(handlers));
    DoorCall door;
    OutBuffer out;
    http->Serve(request, door, out);
    return std::string(out.view());
  }
  std::string Metrics() {
    MetricsPage page;
    Describe(totals_, "public", std::nullopt, WallMs(), page);
    Describe(issuing_.Sums(), page);
    Describe(issuing_.view, page);
    return page.Text();
  }

  Issuing issuing_;
  RecordingControl control_;
  Totals totals_;
  std::unique_ptr<HttpHandler> admin_ = Admin();
};

TEST_F(HttpAdminTest, IsReadyOnlyWhenClientsMayUseIt) {
  for (const auto state : {ServerPhase::kNotReady, ServerPhase::kReady, ServerPhase::kOffline,
                           ServerPhase::kDraining}) {
    issuing_.view.state_ = state;
    const HttpAnswer answer = Ask("/readyz");
    EXPECT_EQ(answer.status, state == ServerPhase::kReady ? 200 : 503);
    EXPECT_EQ(answer.body, std::string(PhaseName(state)) + "\n");
    EXPECT_EQ(Ask("/healthz").status, 200);
  }
}

TEST_F(HttpAdminTest, ConcurrentStatusRequestsShareOneReport) {
  const std::string first = Ask("/v1/status").body;
  EXPECT_EQ(Ask("/v1/status").body, first);
  EXPECT_EQ(issuing_.view.reports, 1);
  issuing_.view.state_ = ServerPhase::kOffline;
  EXPECT_NE(Ask("/v1/status").body.find("OFFLINE"), std::string::npos);
  issuing_.clock.Advance(Milliseconds(5));
  Ask("/v1/status");
  EXPECT_EQ(issuing_.view.reports, 3);
}

TEST_F(HttpAdminTest, ARepeatedStatusRequestWaitsForTheNextReport) {
  std::vector<std::unique_ptr<HttpHandler>> handlers;
  handlers.push_back(Admin());
  const auto http = MakeHttpProtocol(nullptr, std::move(handlers));
  DoorCall door, other;
  Waiting waits, none;
  OutBuffer out;
  const auto ask = [&](DoorCall& call) {
    out.Clear();
    return ServeOrRetry(*http, &call == &door ? waits : none,
                        "GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", call, out)
        .kind;
  };
  EXPECT_EQ(ask(door), ServeStep::Kind::kServed);
  EXPECT_EQ(ask(door), ServeStep::Kind::kPark);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(ask(other), ServeStep::Kind::kServed) << "another connection has not seen this report";
  issuing_.clock.Advance(Milliseconds(5));
  EXPECT_EQ(ask(door), ServeStep::Kind::kServed) << "there is a new report";
  EXPECT_EQ(ask(door), ServeStep::Kind::kPark);
  issuing_.view.state_ = ServerPhase::kOffline;
  EXPECT_EQ(ask(door), ServeStep::Kind::kServed) << "the state has changed";
  EXPECT_NE(out.view().find("OFFLINE"), std::string_view::npos);
  EXPECT_EQ(ask(door), ServeStep::Kind::kPark);
  door.last = true;
  EXPECT_EQ(ask(door), ServeStep::Kind::kServed) << "it has waited long enough";
}

TEST_F(HttpAdminTest, GuardRefusesForeignHostsOnEveryPath) {
  const auto guard = MakeGuardHandler({"firn-1.example"});
  DoorCall door;
  const auto outcome = [&](const char* path, const char* host, HttpAnswer& answer) {
    HttpRequest request;
    request.path = path;
    request.host = host;
    return guard->Handle(request, door, answer);
  };
  for (const char* path : {"/v1/servers", "/v1/openapi.json", "/nothing"}) {
    HttpAnswer answer;
    EXPECT_EQ(outcome(path, "attacker.example", answer), HttpHandler::Outcome::kAnswered);
    EXPECT_EQ(answer.status, 403);
    for (const char* host : {"127.0.0.1:7610", "firn-1.example", ""}) {
      HttpAnswer other;
      EXPECT_EQ(outcome(path, host, other), HttpHandler::Outcome::kNotMine);
    }
  }
}

TEST_F(HttpAdminTest, ReportsWhyItIsNotReady) {
  issuing_.view.state_ = ServerPhase::kNotReady;
  issuing_.view.why_not_ = "this server holds no machine id";
  EXPECT_EQ(Ask("/readyz").body, "NOT_READY\nthis server holds no machine id\n");
}

TEST_F(HttpAdminTest, ReadinessOfATagEqualsTheAnswerToItsCalls) {
  EXPECT_EQ(Readyz("order").body, "READY\n");
  EXPECT_EQ(Readyz("unknown").status, 503);
  EXPECT_NE(Readyz("unknown").body.find("no tag"), std::string::npos);
  issuing_.view.state_ = ServerPhase::kNotReady;
  issuing_.snowflake->CloseClaim();
  EXPECT_EQ(Readyz("slow").status, 200) << "this tag needs no machine id";
  EXPECT_EQ(Readyz("order").body, "NOT_READY\nthis server holds no machine id\n");
  issuing_.view.state_ = ServerPhase::kDraining;
  EXPECT_EQ(Readyz("slow").body, "DRAINING\n");
}

class ConsoleTest : public testing::Test {
 protected:
  // Status 0: the console does not serve the path.
  HttpAnswer Ask(std::string_view path, HttpVerb verb = HttpVerb::kGet,
                 std::string_view host = "127.0.0.1", std::string_view query = "") {
    HttpRequest request;
    request.verb = verb;
    request.path = path;
    request.query = query;
    request.host = host;
    DoorCall door;
    HttpAnswer answer;
    if (console_->Handle(request, door, answer) == HttpHandler::Outcome::kNotMine)
      answer.status = 0;
    return answer;
  }
  std::unique_ptr<HttpHandler> console_ =
      MakeConsoleHandler([] { return R"({"ids":[1]})"; }, {"firn-1.example"});
};

TEST_F(ConsoleTest, ServesAPageWithoutExternalResources) {
  const HttpAnswer page = Ask("/");
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_TRUE(page.body.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(page.body.ends_with("</html>\n"));
  EXPECT_NE(page.body.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.body.find("unsafe"), std::string::npos);
  for (const EmbeddedFile& file : ConsoleFiles()) {
    const HttpAnswer part = Ask(Cat("/console/", file.name));
    EXPECT_EQ(part.content_type, file.content_type);
    EXPECT_EQ(part.body, file.content);
    std::string text = part.body;
    constexpr std::string_view kNamespace = "http://www.w3.org/2000/svg";
    if (const size_t at = text.find(kNamespace); at != std::string::npos) {
      text.erase(at, kNamespace.size());
    }
    for (const char* elsewhere : {"http:", "https:", "=\"//", "@import", "url(", "innerHTML"}) {
      EXPECT_EQ(text.find(elsewhere), std::string::npos) << file.name << ": " << elsewhere;
    }
  }
  EXPECT_EQ(Ask("/console/main.js").content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(Ask("/console/style.css").content_type, "text/css; charset=utf-8");
}

TEST_F(ConsoleTest, DoesNotServeOtherPaths) {
  for (const char* path : {"/console", "/console/", "/console/nothing.js", "/console/../main.js"}) {
    EXPECT_EQ(Ask(path).status, 0) << path;
  }
}

TEST_F(ConsoleTest, ServesTheHistoryAsItIsWritten) {
  EXPECT_EQ(Ask("/v1/history").body, "{\"ids\":[1]}\n");
  EXPECT_EQ(Ask("/v1/history", HttpVerb::kGet, "127.0.0.1", "minutes=5").status, 400);
  console_ = MakeConsoleHandler(nullptr, {});
  EXPECT_EQ(Ask("/v1/history").status, 0);
}

TEST_F(ConsoleTest, RefusesForeignHostsAndOtherVerbs) {
  for (const char* path : {"/", "/console/main.js", "/v1/history"}) {
    EXPECT_EQ(Ask(path, HttpVerb::kGet, "attacker.example").status, 403) << path;
    EXPECT_EQ(Ask(path, HttpVerb::kGet, "firn-1.example").status, 200) << path;
    EXPECT_EQ(Ask(path, HttpVerb::kPost).status, 405) << path;
  }
}

TEST_F(HttpAdminTest, ExplainsIdsForThePage) {
  const auto explained = JsonOf(Ask("/v1/explain/4194304").body);
  EXPECT_EQ(explained.at("ticks"), 1);
  EXPECT_EQ(Ask("/v1/explain/nothing").status, 400);
  EXPECT_EQ(Ask("/v1/explain/1", HttpVerb::kPost).status, 405);
}

TEST_F(HttpAdminTest, StatusContainsWhatAnOperatorNeedsFirst) {
  issuing_.counters.CountIssued(*issuing_.issuer.Resolve("order"), 7);
  issuing_.counters.CountRefused(Reason::kClock);
  const auto json = JsonOf(Ask("/v1/status").body);
  EXPECT_EQ(json.at("state"), "READY");
  EXPECT_EQ(json.at("machine"), 5);
  EXPECT_EQ(json.at("worker"), 1);
  EXPECT_EQ(json.at("rack"), 1);
  EXPECT_EQ(json.at("layout"), "firn");
  EXPECT_EQ(json.at("tags").at(0).at("issued"), 7);
  EXPECT_FALSE(json.at("tags").at(0).contains("trouble"));
  EXPECT_FALSE(json.at("tags").at(0).contains("outdated"));
  EXPECT_EQ(json.at("tags").at(1).at("supply"), 300);
  EXPECT_EQ(json.at("tags").at(1).at("supply_seconds"), 30);
  EXPECT_EQ(json.at("tags").at(1).at("step"), 1'000);
  EXPECT_EQ(json.at("tags").at(1).at("trouble"), "the store is away");
  EXPECT_EQ(json.at("tags").at(1).at("outdated"), "no buffer = none");
  EXPECT_EQ(json.at("tags").at(1).at("ledger_since"), "2025-01-01T00:00:00.000Z");
  EXPECT_EQ(json.at("tags").at(1).at("ledger_numbers"), 7);
  EXPECT_EQ(json.at("refused").at("CLOCK"), 1);
  EXPECT_EQ(json.at("calls"), 2);
}

TEST_F(HttpAdminTest, WritesMetricsForPrometheus) {
  issuing_.counters.CountIssued(*issuing_.issuer.Resolve("order"), 7);
  issuing_.counters.CountRefused(Reason::kClock);
  totals_.closed[static_cast<size_t>(CloseCause::kIdle)] = 3;
  const std::string text = Ask("/metrics").body;
  for (const char* line : {"# TYPE firn_ids_total counter\n", "firn_ids_total{tag=\"order\"} 7\n",
                           "firn_refusals_total{reason=\"CLOCK\"} 1\n",
                           "firn_connections_closed_total{door=\"public\",cause=\"idle\"} 3\n",
                           "firn_machine_id 5\n", "firn_state{state=\"READY\"} 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST_F(HttpAdminTest, ShowsWhetherTheServerIsOverloaded) {
  EXPECT_EQ(JsonOf(Ask("/v1/status").body).at("overloaded"), false);
  issuing_.view.overloaded_ = true;
  issuing_.clock.Advance(Milliseconds(1'000));
  EXPECT_EQ(JsonOf(Ask("/v1/status").body).at("overloaded"), true);
}

TEST_F(HttpAdminTest, ListsRefusedTagsWithTheReason) {
  issuing_.view.refused_tags_ = {{"a", "disabled", Reason::kRejected, "the tag is disabled"},
                                 {"order", "unsupported", Reason::kNotReady, "no store 'main'"}};
  const auto json = JsonOf(Ask("/v1/status").body);
  EXPECT_EQ(json.at("refused_tags_count"), 2);
  EXPECT_EQ(json.at("refused_tags").at(1).at("tag"), "order");
  EXPECT_EQ(json.at("refused_tags").at(1).at("state"), "unsupported");
  EXPECT_EQ(json.at("refused_tags").at(1).at("reason"), "NOT_READY");
  EXPECT_EQ(json.at("refused_tags").at(1).at("why"), "no store 'main'");
  const std::string text = Ask("/metrics").body;
  for (const char* line :
       {"firn_tag_refused{tag=\"order\",state=\"unsupported\"} 1\n", "firn_tags_refused 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  EXPECT_EQ(text.find("firn_tag_refused{tag=\"a\""), std::string::npos);
}

TEST_F(HttpAdminTest, WritesAtMostAHundredSeriesOfRefusedTags) {
  for (int i = 0; i < 500; ++i) {
    issuing_.view.refused_tags_.push_back({std::to_string(i), "lost", Reason::kInternal, "gone"});
  }
  const std::string text = Ask("/metrics").body;
  int series = 0;
  for (size_t at = 0; (at = text.find("firn_tag_refused{", at)) != std::string::npos; ++at)
    ++series;
  EXPECT_EQ(series, 100);
  EXPECT_NE(text.find("firn_tags_refused 500\n"), std::string::npos);
}

TEST_F(HttpAdminTest, CountsLatenciesFromTheSmallestOn) {
  totals_.latency[ProtocolKind::kThrift].buckets[0] = 5;
  totals_.latency[ProtocolKind::kThrift].buckets[3] = 2;
  totals_.latency[ProtocolKind::kThrift].total_us = 12;
  const std::string text = Ask("/metrics").body;
  const std::string series = "firn_request_seconds_bucket{door=\"public\",protocol=\"thrift\",le=";
  for (const std::string& line :
       {series + "\"1e-06\"} 5\n", series + "\"4e-06\"} 5\n", series + "\"8e-06\"} 7\n",
        series + "\"+Inf\"} 7\n",
        std::string("firn_request_seconds_sum{door=\"public\",protocol=\"thrift\"} 1.2e-05\n")}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST_F(HttpAdminTest, GoesOfflineAndOnlineByPostOnly) {
  const auto refused = Ask("/v1/offline");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.allow, "POST");
  EXPECT_EQ(refused.body, "POST\n");
  EXPECT_EQ(Ask("/metrics", HttpVerb::kPost).status, 405);
  EXPECT_EQ(control_.done, "");
  EXPECT_EQ(Ask("/v1/offline", HttpVerb::kPost).status, 200);
  EXPECT_EQ(Ask("/v1/online", HttpVerb::kPost).status, 200);
  EXPECT_EQ(control_.done, "offline online ");
  control_.outcome = Unavailable("no registry");
  EXPECT_EQ(Ask("/v1/offline", HttpVerb::kPost).status, 503);
}

TEST_F(HttpAdminTest, RefusesChangesFromAPageOfAnotherSite) {
  for (const char* word : {"", "0", "true"}) {
    const HttpAnswer refused = Ask("/v1/offline", HttpVerb::kPost, {}, "127.0.0.1:7610", word);
    EXPECT_EQ(refused.status, 403) << word;
    EXPECT_NE(refused.body.find("X-Firn-Admin: 1"), std::string::npos) << refused.body;
  }
  EXPECT_EQ(control_.done, "");
  EXPECT_EQ(Ask("/v1/offline", HttpVerb::kPost, {}, "127.0.0.1:7610", "1").status, 200);
}

TEST_F(HttpAdminTest, RefusesForeignHostNames) {
  for (const char* path : {"/healthz", "/readyz", "/v1/status", "/metrics", "/v1/explain/1"}) {
    for (const char* host : {"", "10.0.0.7", "10.0.0.7:7610", "[::1]:7610", "[2001:db8::7]",
                             "localhost", "LOCALHOST:7610", "firn-1.example:7610"}) {
      EXPECT_EQ(Ask(path, HttpVerb::kGet, {}, host, "").status, 200) << path << " at " << host;
    }
    for (const char* host : {"evil.example", "evil.example:7610", "127.0.0.1.evil.example",
                             "localhost.evil.example", "[evil]", "10.0.0", "127.1", ":7610"}) {
      EXPECT_EQ(Ask(path, HttpVerb::kGet, {}, host, "").status, 403) << path << " at " << host;
    }
  }
  EXPECT_EQ(Ask("/v1/offline", HttpVerb::kPost, {}, "evil.example", "1").status, 403);
  EXPECT_EQ(control_.done, "");
}

// A target may contain a host, too, which must not bypass the check of Host.
TEST_F(HttpAdminTest, RefusesForeignHostNamesInATarget) {
  const struct {
    const char* request;
    const char* status;
  } kCases[] = {
      {"http://127.0.0.1:7610/healthz HTTP/1.1\r\nHost: 127.0.0.1:7610\r\n", "200"},
      {"http://firn-1.example/healthz HTTP/1.1\r\nHost: firn-1.example\r\n", "200"},
      {"http://firn-1.example/healthz HTTP/1.0\r\n", "200"},
      {"http://evil.example/healthz HTTP/1.1\r\nHost: evil.example\r\n", "403"},
      {"http://evil.example/healthz HTTP/1.0\r\n", "403"},
      {"http://evil.example/healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n", "400"},
      {"http://127.0.0.1/healthz HTTP/1.1\r\nHost: evil.example\r\n", "400"},
      {"http://127.0.0.1@evil.example/healthz HTTP/1.0\r\n", "400"},
      {"http://evil.example/healthz HTTP/1.1\r\nHost:\r\n", "400"},
      {"/healthz HTTP/1.1\r\nHost: 127.0.0.1, evil.example\r\n", "400"},
      {"/healthz HTTP/1.1\r\nHost: evil.example\r\n 127.0.0.1\r\n", "400"},
      {"/healthz HTTP/1.1\r\nHost:\r\n", "200"},
  };
  for (const auto& c : kCases) {
    const std::string answer = Raw("GET " + std::string(c.request) + "\r\n");
    EXPECT_EQ(answer.substr(9, 3), c.status) << c.request << answer;
  }
}

TEST_F(HttpAdminTest, RefusesFramingAndContentGuessing) {
  for (const char* path : {"/v1/status", "/v1/explain/none", "/v1/offline"}) {
    OutBuffer out;
    AppendHttp(Ask(path), HttpRequest(), out);
    const std::string_view answer = out.view();
    EXPECT_NE(answer.find("\r\nX-Content-Type-Options: nosniff\r\n"), std::string::npos) << answer;
    EXPECT_NE(answer.find("\r\nContent-Security-Policy: frame-ancestors 'none'\r\n"),
              std::string::npos)
        << answer;
  }
}

}  // namespace
}  // namespace firn::front
