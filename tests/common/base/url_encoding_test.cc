#include "common/base/url_encoding.h"

#include <gtest/gtest.h>

#include "common/time/entropy.h"

namespace firn {
namespace {

TEST(UrlEncodingTest, EncodesLikeJavasUrlEncoder) {
  EXPECT_EQ(UrlEncode("thrift://10.0.0.1:7609/firn.IdService?a=b c&d=*-._"),
            "thrift%3A%2F%2F10.0.0.1%3A7609%2Ffirn.IdService%3Fa%3Db+c%26d%3D*-._");
  EXPECT_EQ(UrlEncode("gr\xc3\xbc\xc3\x9f"), "gr%C3%BC%C3%9F");
  EXPECT_EQ(UrlEncode("~"), "%7E");
}

TEST(UrlEncodingTest, DecodesEncodedRandomBytes) {
  SeededEntropy random(7);
  for (int round = 0; round < 1000; ++round) {
    std::string text(random.Below(40), '\0');
    for (char& c : text) c = static_cast<char>(random.Next());
    const std::string encoded = UrlEncode(text);
    EXPECT_EQ(encoded.find('/'), std::string::npos);
    ASSERT_EQ(*UrlDecode(encoded), text);
  }
}

TEST(UrlEncodingTest, NamesThePositionOfABrokenEscape) {
  for (const char* broken : {"ab%", "ab%4", "ab%4x", "ab%+4", "ab%-1", "ab% 4"}) {
    const Status refused = UrlDecode(broken).status();
    EXPECT_EQ(refused.code(), Code::kInvalid) << broken;
    EXPECT_NE(refused.message().find("position 3"), std::string::npos) << refused;
  }
}

}  // namespace
}  // namespace firn
