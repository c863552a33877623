#include "server/front/net/protocol.h"

#include <string>

#include <gtest/gtest.h>

namespace firn::front {
namespace {

using std::string_literals::operator""s;

TEST(RecogniseTest, DecidesByTheFirstBytes) {
  const struct {
    std::string first;
    DetectedProtocol speech;
  } kCases[] = {
      {"", DetectedProtocol::kUndecided},
      {"\0"s, DetectedProtocol::kUndecided},
      {"\0\0\0\x20"s, DetectedProtocol::kUndecided},
      {"\0\0\0\x20\x80"s, DetectedProtocol::kThriftBinary},
      {"\0\0\0\x20\x82"s, DetectedProtocol::kThriftCompact},
      {"\0\0\0\x20\0"s, DetectedProtocol::kUnknown},  // not strict
      {"\x80\1\0\1"s, DetectedProtocol::kUnknown},    // binary without a frame
      {"\x7f\xff\xff\xff"s, DetectedProtocol::kUnknown},
      {"G", DetectedProtocol::kHttp},
      {"POST /", DetectedProtocol::kHttp},
      {"\r", DetectedProtocol::kHttp},  // an empty line before a request
      {"\r\nGET /", DetectedProtocol::kHttp},
      {"\nGET /", DetectedProtocol::kUnknown},
      {"get /", DetectedProtocol::kUnknown},
      {"\x16\3\1"s, DetectedProtocol::kUnknown},  // TLS
      {"*", DetectedProtocol::kRedis},
      {"*1\r\n", DetectedProtocol::kRedis},
      {"\xda", DetectedProtocol::kUndecided},
      {"\xda\xbb", DetectedProtocol::kDubbo},
      {"\xda\xba", DetectedProtocol::kUnknown},
      {"\xbb\xda", DetectedProtocol::kUnknown},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Recognise(c.first), c.speech) << testing::PrintToString(c.first);
  }
}

}  // namespace
}  // namespace firn::front
