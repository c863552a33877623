#include "server/front/net/protocol.h"

#include <string>

#include <gtest/gtest.h>

namespace firn::front {
namespace {

using std::string_literals::operator""s;

TEST(RecogniseTest, DecidesByTheFirstBytes) {
  const struct {
    std::string first;
    Speech speech;
  } kCases[] = {
      {"", Speech::kUndecided},
      {"\0"s, Speech::kUndecided},
      {"\0\0\0\x20"s, Speech::kUndecided},
      {"\0\0\0\x20\x80"s, Speech::kThriftBinary},
      {"\0\0\0\x20\x82"s, Speech::kThriftCompact},
      {"\0\0\0\x20\0"s, Speech::kUnknown},  // not strict
      {"\x80\1\0\1"s, Speech::kUnknown},    // binary without a frame
      {"\x7f\xff\xff\xff"s, Speech::kUnknown},
      {"G", Speech::kHttp},
      {"POST /", Speech::kHttp},
      {"\r", Speech::kHttp},  // an empty line before a request
      {"\r\nGET /", Speech::kHttp},
      {"\nGET /", Speech::kUnknown},
      {"get /", Speech::kUnknown},
      {"\x16\3\1"s, Speech::kUnknown},  // TLS
      {"*", Speech::kRedis},
      {"*1\r\n", Speech::kRedis},
      {"\xda", Speech::kUndecided},
      {"\xda\xbb", Speech::kDubbo},
      {"\xda\xba", Speech::kUnknown},
      {"\xbb\xda", Speech::kUnknown},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Recognise(c.first), c.speech) << testing::PrintToString(c.first);
  }
}

}  // namespace
}  // namespace firn::front
