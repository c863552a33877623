#include "server/front/http/http_protocol.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/server/front/http/http_calls.h"
#include "tests/support/temp_dir.h"

namespace firn::front {
namespace {

using Kind = ServeStep::Kind;

class HttpProtocolTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = SenselessHere(); !why.empty()) GTEST_SKIP() << why;
  }
  void ExpectRefused(std::string_view request, int status, CloseCause cause) {
    const auto answer = http_.Raw(request);
    EXPECT_EQ(answer.status(), status) << request;
    EXPECT_EQ(answer.step.kind, Kind::kClose) << request;
    EXPECT_EQ(CloseCauseName(answer.step.cause), CloseCauseName(cause)) << request;
    EXPECT_TRUE(answer.HasField("Connection: close")) << answer.head;
  }

  Issuing issuing_;
  HttpSide http_{issuing_};
};

TEST_F(HttpProtocolTest, ServesTheFirstOfManyRequests) {
  const std::string request = "GET /v1/ids/slow HTTP/1.1\r\nHost: x\r\n\r\n";
  const auto answer = http_.Raw(request + request);
  EXPECT_EQ(answer.step.kind, Kind::kServed);
  EXPECT_EQ(answer.step.bytes, request.size());
  EXPECT_EQ(answer.status(), 200);
}

TEST_F(HttpProtocolTest, WaitsForTheRestOfEveryTornRequest) {
  const std::string request =
      "POST /v1/ids/slow HTTP/1.1\r\nHost: x\r\nContent-Type: "
      "application/x-www-form-urlencoded\r\nContent-Length: 7\r\n\r\ncount=2";
  for (size_t n = 1; n < request.size(); ++n) {
    const auto answer = http_.Raw(request.substr(0, n));
    EXPECT_EQ(answer.step.kind, Kind::kNeedMore) << n;
    EXPECT_TRUE(answer.head.empty()) << n;
  }
  EXPECT_EQ(http_.Raw(request).json().at("ids").size(), 2u);
}

TEST_F(HttpProtocolTest, ReportsTheLengthOfAnIncompleteBody) {
  const std::string head = "POST /v1/ids/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n";
  EXPECT_EQ(http_.Raw(head + "some").step.bytes, head.size() + 5000);
}

TEST_F(HttpProtocolTest, ReportsAPeerThatExpectsContinue) {
  const std::string head = "POST /v1/ids/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n";
  const std::string expects = "Expect: 100-Continue\r\n";
  EXPECT_TRUE(http_.Raw(head + expects + "\r\n").step.peer_waits);
  EXPECT_FALSE(http_.Raw(head + expects).step.peer_waits) << "the header is incomplete";
  EXPECT_FALSE(http_.Raw(head + "\r\n").step.peer_waits);
  EXPECT_FALSE(
      http_.Raw("POST / HTTP/1.0\r\nContent-Length: 7\r\n" + expects + "\r\n").step.peer_waits);
  const auto whole = http_.Raw(head + expects + "\r\ncount=2");
  EXPECT_EQ(whole.step.kind, Kind::kServed);
}

TEST_F(HttpProtocolTest, ReadsABodyInChunks) {
  const auto answer = http_.Raw(
      "POST /v1/ids/slow HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
      "Transfer-Encoding: chunked\r\n\r\n4\r\ncoun\r\n3\r\nt=3\r\n0\r\n\r\n");
  EXPECT_EQ(answer.step.kind, Kind::kServed);
  EXPECT_EQ(answer.json().at("ids").size(), 3u);
}

TEST_F(HttpProtocolTest, FindsTheEndOfAWholeRequestInAnyPieces) {
  const std::string head = "POST /v1/ids/slow HTTP/1.1\r\nHost: x\r\n";
  for (const std::string& request :
       {head + "\r\n", head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        head +
            "Transfer-Encoding: chunked\r\n\r\n8;a=b\r\n\r\n\r\n\r\n\r\n\r\n0\r\nA: b\r\n\r\n"}) {
    ASSERT_EQ(http_.Raw(request).step.kind, Kind::kServed) << request;
    for (size_t n = 1; n < request.size(); ++n) {
      ASSERT_EQ(http_.Raw(request.substr(0, n)).step.kind, Kind::kNeedMore) << request;
      for (const std::string& more : {request, request + "GET"}) {
        PartialRead read{.parsed = n};
        EXPECT_TRUE(http_.protocol().MayBeWhole(more, read)) << n << " of " << more;
      }
    }
  }
}

TEST_F(HttpProtocolTest, DoesNotParseAgainWhileABodyOnlyGrows) {
  std::string request =
      "POST /v1/ids/slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  PartialRead read{.parsed = request.size()};
  int looks = 0;
  for (int i = 0; i < 10; ++i) {
    request += "1\r\nx\r\n";
    looks += http_.protocol().MayBeWhole(request, read) ? 1 : 0;
  }
  EXPECT_EQ(looks, 0);
}

TEST_F(HttpProtocolTest, KeepsOrClosesTheConnectionAsAsked) {
  const struct {
    const char* request;
    Kind kind;
    const char* field;
  } kCases[] = {
      {"GET /genid HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", Kind::kClose,
       "Connection: close"},
      {"GET /genid HTTP/1.0\r\n\r\n", Kind::kClose, "Connection: close"},
      {"GET /genid HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", Kind::kServed,
       "Connection: keep-alive"},
  };
  for (const auto& c : kCases) {
    const auto answer = http_.Raw(c.request);
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.step.kind, c.kind) << c.request;
    EXPECT_TRUE(answer.HasField(c.field)) << answer.head;
  }
}

TEST_F(HttpProtocolTest, RefusesRequestsThatAProxyCouldReadDifferently) {
  for (const char* request : {
           "GET /genid HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
           "GET /genid HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
           "GET /genid HTTP/1.1\r\nHost: x\r\nContent-Length: 0x5\r\n\r\nhello",
           "GET /genid HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nhello",
           "GET /genid HTTP/1.1\nHost: x\n\n",
           "GET  /genid HTTP/1.1\r\nHost: x\r\n\r\n",
           "GET /genid HTTP/2.7\r\nHost: x\r\n\r\n",
           "GET /genid\r\n\r\n",
           "GET /genid HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
           "GET /genid HTTP/1.1\r\nHost: x\r\nA: \1\r\n\r\n",
           "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
       }) {
    ExpectRefused(request, 400, CloseCause::kBadHttp);
  }
  EXPECT_EQ(http_.Get("/genid").status(), 200);
}

TEST_F(HttpProtocolTest, RefusesABodyThatTwoReadersCouldReadDifferently) {
  const std::string smuggled = "GET /genid HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const std::string& fields :
       {std::string("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        std::string("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
        std::string("Transfer-Encoding: gzip\r\n"), std::string("Transfer-Encoding: identity\r\n"),
        std::string("Transfer-Encoding: xchunked\r\n"), std::string("Transfer-Encoding:\r\n"),
        std::string("Transfer-Encoding: chunked, gzip\r\n"),
        std::string("Transfer-Encoding: gzip, chunked\r\n"),
        std::string("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        std::string("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n")}) {
    ExpectRefused("POST /genid HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n0\r\n\r\n" + smuggled, 400,
                  CloseCause::kBadHttp);
  }
  ExpectRefused("POST /genid HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
                CloseCause::kBadHttp);
  EXPECT_EQ(issuing_.Sums().calls, 0u);
}

TEST_F(HttpProtocolTest, RequiresOneHostInHttp11) {
  ExpectRefused("GET /genid HTTP/1.1\r\n\r\n", 400, CloseCause::kBadHttp);
  ExpectRefused("GET /genid HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400, CloseCause::kBadHttp);
  EXPECT_EQ(http_.Raw("GET /genid HTTP/1.0\r\n\r\n").status(), 200);
  EXPECT_EQ(http_.Raw("GET /genid HTTP/1.1\r\n\r\n").body, "HTTP/1.1 requires a Host header\n");
}

TEST_F(HttpProtocolTest, RefusesHeadersBeyondTheLimitBeforeTheyEnd) {
  const std::string fits =
      "GET /genid HTTP/1.1\r\nHost: x\r\nA: " + std::string(8000, 'a') + "\r\n\r\n";
  EXPECT_EQ(http_.Raw(fits).status(), 200);
  ExpectRefused("GET /genid HTTP/1.1\r\nHost: x\r\nA: " + std::string(9000, 'a'), 431,
                CloseCause::kHttpTooLarge);
  ExpectRefused("GET /" + std::string(9000, 'a'), 431, CloseCause::kHttpTooLarge);
}

TEST_F(HttpProtocolTest, RefusesBodiesBeyondTheLimitBeforeTheyArrive) {
  const std::string head = "POST /genid HTTP/1.1\r\nHost: x\r\n";
  EXPECT_EQ(http_.Raw(head + "Content-Length: 65536\r\n\r\n").step.kind, Kind::kNeedMore);
  ExpectRefused(head + "Content-Length: 65537\r\n\r\n", 413, CloseCause::kHttpTooLarge);
  ExpectRefused(head + "Transfer-Encoding: chunked\r\n\r\n10001\r\n" + std::string(65'537, 'x'),
                413, CloseCause::kHttpTooLarge);
}

TEST_F(HttpProtocolTest, AnswersUnknownPathsAndVerbs) {
  EXPECT_EQ(http_.Get("/").status(), 404);
  EXPECT_EQ(http_.Get("/v1/nothing").status(), 404);
  const auto answer = http_.Raw("DELETE /v1/ids/order HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(answer.status(), 405);
  EXPECT_TRUE(answer.HasField("Allow: GET, HEAD, POST, OPTIONS"));
}

TEST_F(HttpProtocolTest, ParksACallAndResumesIt) {
  issuing_.slow->waits = true;
  for (const char* path : {"/v1/ids/slow", "/api/segment/get/slow", "/id/nextId?bizType=slow"}) {
    const std::string request = "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n";
    issuing_.slow->waits = true;
    const auto parked = http_.Raw(request);
    EXPECT_EQ(parked.step.kind, Kind::kPark);
    EXPECT_EQ(parked.step.again_us, 100);
    EXPECT_TRUE(parked.head.empty());
    issuing_.slow->waits = false;
    EXPECT_EQ(http_.Raw(request).status(), 200);
  }
}

TEST_F(HttpProtocolTest, RefusesAParkedCallAtItsLastAttempt) {
  issuing_.slow->waits = true;
  const std::string request = "GET /v1/ids/slow HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_EQ(http_.Raw(request).step.kind, Kind::kPark);
  const auto answer = http_.Raw(request, true);
  EXPECT_EQ(answer.status(), 503);
  EXPECT_EQ(answer.json().at("error").at("reason"), "OVERLOADED");
}

// A repeated request is recognised by its bytes. Its answer must equal that of a protocol that has
// not served the request before.
class SameRequestAgainTest : public HttpProtocolTest {
 protected:
  // Returns the id, or the status of an answer without one.
  int64_t Ask(const std::string& request) {
    const auto got = http_.Raw(request + request);
    HttpSide newcomer{issuing_};
    const auto other = newcomer.Raw(request);
    EXPECT_EQ(WithoutLength(got), WithoutLength(other)) << request;
    EXPECT_EQ(got.step.bytes, other.step.bytes);
    if (got.status() != 200) return got.status();
    EXPECT_NE(got.body, other.body) << "the same id twice";
    return std::stoll(got.body);
  }
  static std::string WithoutLength(const HttpSide::Answer& answer) {
    const std::string field = "\r\nContent-Length: " + std::to_string(answer.body.size()) + "\r\n";
    std::string head = answer.head;
    const size_t at = head.find(field);
    EXPECT_NE(at, std::string::npos) << head;
    return at == std::string::npos ? head : head.erase(at, field.size());
  }
  static std::string Get(std::string_view path) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  }
};

TEST_F(SameRequestAgainTest, GetsANewIdOfItsTag) {
  const std::string slow = Get("/api/segment/get/slow"), order = Get("/api/snowflake/get/order");
  const std::string kept = "GET /api/segment/get/slow HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  // Beyond 9 and 99, where the body grows.
  for (int round = 0; round < 40; ++round) {
    EXPECT_LT(Ask(slow), 1'000);
    EXPECT_LT(Ask(kept), 1'000);
    EXPECT_GT(Ask(order), 1'000'000);
    EXPECT_GT(Ask(Get("/api/snowflake/get/order?" + std::to_string(round))), 1'000'000);
  }
  EXPECT_GT(issuing_.Sums().issued.at("slow"), 100u);
}

TEST_F(SameRequestAgainTest, IsRefusedOnceTheTagIsRemoved) {
  const std::string slow = Get("/api/segment/get/slow");
  EXPECT_EQ(Ask(slow), 1);
  EXPECT_EQ(Ask(slow), 3);
  issuing_.issuer.Remove("slow");
  EXPECT_EQ(Ask(slow), 500);
}

TEST_F(SameRequestAgainTest, IsRefusedWhileTheServerDrains) {
  const std::string order = Get("/api/snowflake/get/order");
  EXPECT_GT(Ask(order), 500);
  issuing_.issuer.Drain();
  EXPECT_EQ(Ask(order), 500);
}

TEST_F(SameRequestAgainTest, UsesATagDefinedLaterInsteadOfTheDefault) {
  issuing_.issuer.SetDefault(TagBinding{"", std::make_shared<ScriptedStrategy>(), {}});
  EXPECT_EQ(Ask(Get("/api/segment/get/new")), 1);
  const auto own = std::make_shared<ScriptedStrategy>();
  own->next = 5'000;
  ASSERT_TRUE(issuing_.issuer.Set({"new", own, {}}).ok());
  EXPECT_EQ(Ask(Get("/api/segment/get/new")), 5'000);
}

TEST_F(SameRequestAgainTest, WaitsWhenThereAreNoIds) {
  const std::string slow = Get("/api/segment/get/slow");
  EXPECT_EQ(Ask(slow), 1);
  issuing_.slow->waits = true;
  EXPECT_EQ(http_.Raw(slow).step.kind, Kind::kPark);
  issuing_.slow->waits = false;
  const int asked = issuing_.slow->asked;
  EXPECT_EQ(http_.Raw(slow).step.kind, Kind::kServed) << "this must be the parked call";
  EXPECT_EQ(issuing_.slow->asked, asked + 1);
}

TEST_F(SameRequestAgainTest, IsNotConfusedWithOneThatContinuesDifferently) {
  EXPECT_EQ(Ask(Get("/api/segment/get/slow")), 1);
  EXPECT_EQ(http_.Raw("GET /api/segment/get/slow HTTP/1.1\r\nHost: x\r\n").step.kind,
            Kind::kNeedMore);
  const auto last =
      http_.Raw("GET /api/segment/get/slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(last.step.kind, Kind::kClose);
  EXPECT_TRUE(last.HasField("Connection: close"));
}

TEST_F(HttpProtocolTest, WithoutRightsHeadRevealsNoTags) {
  const TempDir dir;
  TagRights rights(dir / "names");
  std::ofstream(dir / "names") << "shop.example slow\n";
  ASSERT_TRUE(rights.Load().ok());
  IdDesk desk(issuing_.issuer, issuing_.counters, Method::kHttp, "order", &rights);
  const auto http = MakeHttp(issuing_, desk);
  const auto status = [&](const std::string& tag) {
    DoorCall door{.names = {"shop.example"}};
    OutBuffer out;
    http->Serve("HEAD /v1/ids/" + tag + " HTTP/1.1\r\nHost: x\r\n\r\n", door, out);
    return std::string(out.view().substr(9, 3));
  };
  EXPECT_EQ(status("slow"), "200");
  EXPECT_EQ(status("order"), "429");
  EXPECT_EQ(status("nothing"), "429");
}

}  // namespace
}  // namespace firn::front
