// The method, the host, and the beginning and end of a request, as RFC 9112 requires. A request
// that a proxy between client and server could read differently is refused.

#include <gtest/gtest.h>

#include "server/front/http/http_protocol.h"
#include "tests/server/front/http/http_calls.h"

namespace firn::front {
namespace {

using Kind = ServeStep::Kind;

class HttpReadingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = SenselessHere(); !why.empty()) GTEST_SKIP() << why;
  }
  static std::string Request(const std::string& line, const std::string& fields) {
    return line + "\r\n" + fields + "\r\n";
  }
  static std::string AskedOf(const std::string& host) {
    return Request("GET /genid HTTP/1.1", "Host: " + host + "\r\n");
  }
  void ExpectServed(const std::string& request) {
    const auto answer = http_.Raw(request);
    EXPECT_EQ(answer.status(), 200) << request << answer.head << answer.body;
    EXPECT_EQ(answer.step.kind, Kind::kServed) << request;
    EXPECT_EQ(answer.step.bytes, request.size()) << request;
  }
  void ExpectBad(const std::string& request, const std::string& why = {}) {
    const uint64_t before = issuing_.Sums().calls;
    const auto answer = http_.Raw(request);
    EXPECT_EQ(answer.status(), 400) << request << answer.head;
    EXPECT_EQ(answer.step.kind, Kind::kClose) << request;
    EXPECT_TRUE(answer.HasField("Connection: close")) << request << answer.head;
    EXPECT_NE(answer.body.find(why), std::string::npos) << request << answer.body;
    EXPECT_EQ(issuing_.Sums().calls, before) << request;
  }

  Issuing issuing_;
  HttpSide http_{issuing_};
};

TEST_F(HttpReadingTest, AcceptsAHostNameOrAddressWithAnOptionalPort) {
  for (const char* host : {"x", "firn-1.example", "firn_1.example.:7609", "10.0.0.7:65535", "[::1]",
                           "[2001:db8::7]:7609", "[::ffff:10.0.0.7]:1", "X:", "x:00080"}) {
    ExpectServed(AskedOf(host));
  }
}

TEST_F(HttpReadingTest, RefusesAnInvalidHost) {
  for (const char* host : {"a b",     "a,b",        "a, b",   "u@a",       "u:p@a",
                           "a:x",     "a:-1",       "a:+1",   "a:65536",   "a:80:80",
                           "a: 80",   ":",          ":7609",  "[",         "[]",
                           "[::1",    "::1",        "[::1]]", "[::1]7609", "[::1]:x",
                           "x[::1]",  "[10.0.0.7]", "[x]",    "[v1.x]",    "[fe80::1%eth0]",
                           "a/",      "/",          "a?",     "a#",        "a\\b",
                           "a%2e",    "http://a",   "\"a\"",  "<a>",       "a;b",
                           "\xc3\xa9"}) {
    ExpectBad(AskedOf(host), "Host is not a host");
    ExpectBad(Request("GET /genid HTTP/1.0", "Host: " + std::string(host) + "\r\n"));
  }
}

TEST_F(HttpReadingTest, AcceptsAnEmptyHost) {
  ExpectServed(AskedOf(""));
  ExpectServed(AskedOf(" \t "));
  ExpectBad(Request("GET http://a/genid HTTP/1.1", "Host:\r\n"), "the Host header differs");
}

TEST_F(HttpReadingTest, AcceptsATargetWithAHost) {
  ExpectServed(Request("GET http://a:7609/genid HTTP/1.1", "Host: a:7609\r\n"));
  ExpectServed(Request("GET HTTPS://A.example/genid? HTTP/1.1", "Host: a.EXAMPLE\r\n"));
  ExpectServed(Request("GET http://[::1]:7609/genid HTTP/1.1", "Host: [::1]:7609\r\n"));
  ExpectServed(Request("GET http://a/genid HTTP/1.0", "Connection: keep-alive\r\n"));
  const auto three = http_.Raw(Request("GET http://a/v1/ids/slow?count=3 HTTP/1.1", "Host: a\r\n"));
  EXPECT_EQ(three.json().at("ids").size(), 3u) << three.body;
  for (const char* root : {"http://a", "http://a/", "http://a?b", "http://a?/genid"}) {
    const auto answer = http_.Raw(Request("GET " + std::string(root) + " HTTP/1.1", "Host: a\r\n"));
    EXPECT_EQ(answer.status(), 404) << root;
    EXPECT_EQ(answer.step.kind, Kind::kServed) << root;
  }
}

TEST_F(HttpReadingTest, RequiresTheTargetsHostToEqualHost) {
  for (const char* target : {"http://b/genid", "http://a:80/genid", "http://a.b/genid"}) {
    ExpectBad(Request("GET " + std::string(target) + " HTTP/1.1", "Host: a\r\n"),
              "the Host header differs");
    ExpectBad(Request("GET " + std::string(target) + " HTTP/1.0", "Host: a\r\n"),
              "the Host header differs");
  }
  ExpectBad(Request("GET http://a/genid HTTP/1.1", ""), "requires a Host header");
  ExpectBad(Request("GET http://a/genid HTTP/1.1", "Host: a\r\nHost: a\r\n"), "more than one Host");
}

TEST_F(HttpReadingTest, RefusesAnInvalidTarget) {
  for (const char* target :
       {"genid", "*", "?", "a:80", "http:", "http:/genid", "http://", "http:///genid",
        "http://u@a/genid", "http://u:p@a/genid", "http://a:b/genid", "http://a\\@b/genid",
        "http://a#b/genid", "http://[::1/genid", "ftp://a/genid", "ws://a/genid"}) {
    ExpectBad(Request("GET " + std::string(target) + " HTTP/1.1", "Host: a\r\n"), "the target is");
  }
  ExpectBad(Request("CONNECT a:80 HTTP/1.1", "Host: a:80\r\n"), "the target is");
  ExpectBad(Request("OPTIONS *x HTTP/1.1", "Host: a\r\n"), "the target is");
}

TEST_F(HttpReadingTest, OptionsMayNameTheServerItself) {
  for (const char* target : {"*", "http://a:1", "https://a:1"}) {
    const auto answer =
        http_.Raw(Request("OPTIONS " + std::string(target) + " HTTP/1.1", "Host: a:1\r\n"));
    EXPECT_EQ(answer.status(), 204) << target;
    EXPECT_TRUE(answer.HasField("Allow: GET, HEAD, POST, OPTIONS")) << answer.head;
  }
  const auto root = http_.Raw(Request("OPTIONS http://a/ HTTP/1.1", "Host: a\r\n"));
  EXPECT_EQ(root.status(), 404) << "it is an ordinary path";
}

TEST_F(HttpReadingTest, SkipsTwoEmptyLinesBeforeARequest) {
  const std::string request = AskedOf("x");
  ExpectServed("\r\n" + request);
  ExpectServed("\r\n\r\n" + request);
  const std::string post =
      Request("POST /v1/ids/slow HTTP/1.1", "Host: x\r\nContent-Length: 7\r\n");
  EXPECT_EQ(http_.Raw("\r\n" + post).step.bytes, 2 + post.size() + 7) << "up to the body's end";
}

TEST_F(HttpReadingTest, WaitsForTheRestOfARequestBehindEmptyLines) {
  const std::string request = "\r\n\r\n" + AskedOf("x");
  for (size_t n = 1; n < request.size(); ++n) {
    EXPECT_EQ(http_.Raw(request.substr(0, n)).step.kind, Kind::kNeedMore) << n;
    PartialRead read{.parsed = n};
    EXPECT_TRUE(http_.protocol().MayBeWhole(request, read)) << n;
  }
}

TEST_F(HttpReadingTest, RefusesMoreEmptyLinesAndIncompleteOnes) {
  const std::string request = AskedOf("x");
  for (const char* before :
       {"\r\n\r\n\r\n", "\r\n\r\n\r", "\n", "\r", "\r\r\n", "\r\n\n", " \r\n", "\r\n "}) {
    ExpectBad(before + request);
  }
  ExpectBad("\r\n\r\n\r\n");
}

// Beast joins a value on several lines in memory that is freed before the value is used.
TEST_F(HttpReadingTest, RefusesAFieldOnSeveralLines) {
  for (const std::string field :
       {"Host: x\r\n y\r\n", "Host:\r\n x\r\n", "Host: x\r\n\t\r\n", "Host: x\r\nA: b\r\n c\r\n"}) {
    ExpectBad(Request("GET /genid HTTP/1.1", field), "folded");
  }
  ExpectBad(Request("GET /genid HTTP/1.1", "Host: x\r\nA:\r\n \r\n b\r\n"), "folded");
  ExpectBad(Request("GET /genid HTTP/1.1", " Host: x\r\n"));
  const std::string chunks =
      Request("POST /genid HTTP/1.1", "Host: x\r\nTransfer-Encoding: chunked\r\n");
  ExpectBad(chunks + "0\r\nA: b\r\n c\r\n\r\n", "folded");
}

TEST_F(HttpReadingTest, RefusesALineWithAnIncompleteEnd) {
  for (const char* request :
       {"GET /genid HTTP/1.1\nHost: x\r\n\r\n", "GET /genid HTTP/1.1\rHost: x\r\n\r\n",
        "GET /genid HTTP/1.1\r\nHost: x\n\r\n", "GET /genid HTTP/1.1\r\nHost: x\r\r\n\r\n",
        "GET /genid HTTP/1.1\r\nHost: x\r\nA: b\rC: d\r\n\r\n",
        "GET /genid HTTP/1.1\r\nHost: x\r\nA: b\nC: d\r\n\r\n",
        "GET /genid\tHTTP/1.1\r\nHost: x\r\n\r\n"}) {
    ExpectBad(request);
  }
  ExpectBad(Request("GET /genid HTTP/1.1", std::string("Host: x\0y\r\n", 11)));
  ExpectBad(Request("GET /genid HTTP/1.1", std::string("Host: x\r\nA\0: y\r\n", 16)));
  ExpectBad(Request(std::string("GET /gen\0id HTTP/1.1", 20), "Host: x\r\n"));
}

// A reader that accepts a single LF as the end of a line would see other chunks.
TEST_F(HttpReadingTest, RefusesChunkExtensionsThatAreNotOneLineOfText) {
  const std::string head =
      Request("POST /genid HTTP/1.1", "Host: x\r\nTransfer-Encoding: chunked\r\n");
  for (const char* bad : {";a=\"\n\"", ";a=\"\r\"", ";a=\"\1\"", ";a=\"\\\n\"", ";\n", ";a\n", "\n",
                          ";a=\"\x7f\"", " ", ";", ";a=", "x"}) {
    ExpectBad(head + "1" + bad + "\r\nx\r\n0\r\n\r\n");
    ExpectBad(head + "0" + bad + "\r\n\r\n");
  }
  for (const char* good : {"", ";a", ";a=b", ";a=\"b \t\\\"c\xc3\xa9\"", " ; a = b;c"}) {
    const auto answer = http_.Raw(head + "1" + good + "\r\nx\r\n0" + good + "\r\nT: v\r\n\r\n");
    EXPECT_EQ(answer.step.kind, Kind::kServed) << good;
  }
}

TEST_F(HttpReadingTest, ConnectionCloseClosesTheConnection) {
  for (const char* version : {"1.0", "1.1"}) {
    for (const char* words : {"close", "Close", "keep-alive, close", "close, keep-alive",
                              "close\r\nConnection: keep-alive", "x,close ,y"}) {
      const auto answer =
          http_.Raw(Request("GET /genid HTTP/" + std::string(version),
                            "Host: x\r\nConnection: " + std::string(words) + "\r\n"));
      EXPECT_EQ(answer.status(), 200) << words;
      EXPECT_EQ(answer.step.kind, Kind::kClose) << version << " " << words;
      EXPECT_TRUE(answer.HasField("Connection: close")) << answer.head;
    }
  }
}

TEST_F(HttpReadingTest, ARefusedHeadHasNoBody) {
  const auto head = http_.Raw("HEAD /genid HTTP/1.1\r\n\r\n");
  const auto got = http_.Raw("GET /genid HTTP/1.1\r\n\r\n");
  EXPECT_EQ(head.status(), 400);
  EXPECT_EQ(head.head, got.head);
  EXPECT_EQ(head.body, "");
  OutBuffer out;
  http_.protocol().TooLong(out);
  EXPECT_TRUE(out.view().ends_with("\r\n\r\ntoo large\n")) << "the next request is not a HEAD";
}

}  // namespace
}  // namespace firn::front
