#include "server/front/redis/resp_request.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/server/front/redis/redis_side.h"

namespace firn::front {
namespace {

using Kind = RespParsed::Kind;

constexpr RespLimits kLimits{.words_max = 20, .bytes_max = 400};

std::vector<std::string> WordsOf(const RespRequest& request) {
  std::vector<std::string> words;
  for (size_t i = 0; i < request.count; ++i) words.emplace_back(request[i]);
  return words;
}

TEST(RespRequestTest, ReadsTheWords) {
  const std::vector<std::string> words = {"INCR", "", "a\r\nb", std::string(100, 'x')};
  const std::string text = Resp(words) + "*1\r\n";
  RespRequest request;
  const RespParsed parsed = ParseResp(text, kLimits, request);
  ASSERT_EQ(parsed.kind, Kind::kWhole) << parsed.fault;
  EXPECT_EQ(parsed.bytes, text.size() - 4);
  EXPECT_EQ(WordsOf(request), words);
  EXPECT_EQ(request[4], "");
}

TEST(RespRequestTest, CountsWordsThatItDoesNotKeep) {
  RespRequest request;
  const std::string text = Resp(std::vector<std::string>(20, "w"));
  EXPECT_EQ(ParseResp(text, kLimits, request).kind, Kind::kWhole);
  EXPECT_EQ(request.count, 20u);
  EXPECT_EQ(request[15], "w");
  EXPECT_EQ(request[16], "");
}

TEST(RespRequestTest, AcceptsEmptyRequests) {
  for (const std::string text : {"*0\r\n", "*-1\r\n"}) {
    RespRequest request;
    const RespParsed parsed = ParseResp(text + "*1", kLimits, request);
    EXPECT_EQ(parsed.kind, Kind::kWhole) << text;
    EXPECT_EQ(parsed.bytes, text.size());
    EXPECT_EQ(request.count, 0u);
  }
}

// The reported length never exceeds the real one, grows with every attempt, and is exact in the
// end.
TEST(RespRequestTest, ReportsTheLeastLengthOfAnIncompleteRequest) {
  const std::string text = Resp({"HELLO", "3", "SETNAME", "", "0123456789"});
  for (size_t size = 1; size < text.size(); ++size) {
    RespRequest request;
    const RespParsed parsed = ParseResp(text.substr(0, size), kLimits, request);
    ASSERT_EQ(parsed.kind, Kind::kNeedMore) << size;
    EXPECT_GT(parsed.bytes, size);
    EXPECT_LE(parsed.bytes, text.size());
  }
}

TEST(RespRequestTest, RefusesWhatRedisRefuses) {
  for (const std::string text :
       {"GET / HTTP/1.1\r\n", "PING\r\n", "*\r\n", "*x\r\n", "*1\n$4\r\nPING\r\n", "*+1\r\n",
        "*01\r\n", "*-2\r\n", "*1\r\rx", "*123456789012345678901", "*1\r\nPING\r\n", "*1\r\n:4\r\n",
        "*1\r\n$-1\r\n", "*1\r\n$\r\n", "*1\r\n$x\r\n", "*1\r\n$4\r\nPINGxx",
        "*1\r\n$3\r\nPING\r\n", "*1\r\n*1\r\n$4\r\nPING\r\n"}) {
    RespRequest request;
    const RespParsed parsed = ParseResp(text, kLimits, request);
    EXPECT_EQ(parsed.kind, Kind::kBad) << testing::PrintToString(text);
    EXPECT_TRUE(parsed.fault.starts_with("Protocol error: ")) << parsed.fault;
  }
}

TEST(RespRequestTest, RefusesDeclaredLengthsBeyondTheLimits) {
  for (const std::string text :
       {"*21\r\n", "*9223372036854775807\r\n", "*1\r\n$500\r\n", "*1\r\n$9223372036854775807\r\n",
        "*18446744073709551617\r\n", "*1\r\n$4294967296\r\n", "*2\r\n$385\r\n"}) {
    RespRequest request;
    EXPECT_EQ(ParseResp(text, kLimits, request).kind, Kind::kBad) << text;
  }
  RespRequest request;
  EXPECT_EQ(ParseResp("*2\r\n$381\r\n", kLimits, request).kind, Kind::kNeedMore);
}

}  // namespace
}  // namespace firn::front
