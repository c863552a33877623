#include "server/front/desk/trace_id.h"

#include <string>

#include <gtest/gtest.h>

namespace firn::front {
namespace {

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";

TEST(TraceIdTest, ReadsATraceparent) {
  const std::string header = std::string("00-") + kTrace + "-00f067aa0ba902b7-01";
  EXPECT_EQ(TraceIdOf(header), kTrace);
  EXPECT_EQ(TraceIdOf("cc" + header.substr(2)), kTrace) << "a later version";
  EXPECT_EQ(TraceIdOf("cc" + header.substr(2) + "-more"), kTrace) << "with another part";
}

TEST(TraceIdTest, IgnoresAnInvalidHeader) {
  const std::string header = std::string("00-") + kTrace + "-00f067aa0ba902b7-01";
  for (size_t size = 0; size < header.size(); ++size) {
    EXPECT_EQ(TraceIdOf(header.substr(0, size)), "") << size;
  }
  for (size_t i = 0; i < header.size(); ++i) {
    for (const char c : {'G', '\n', '\0', '-', 'A'}) {
      std::string damaged = header;
      damaged[i] = c;
      if (damaged == header) continue;
      EXPECT_EQ(TraceIdOf(damaged), "") << damaged;
    }
  }
  EXPECT_EQ(TraceIdOf(header + "-more"), "") << "version 00 has four parts";
  EXPECT_EQ(TraceIdOf("cc" + header.substr(2) + "more"), "");
  EXPECT_EQ(TraceIdOf("ff" + header.substr(2)), "");
  EXPECT_EQ(TraceIdOf("00-" + std::string(32, '0') + header.substr(35)), "");
  EXPECT_EQ(TraceIdOf(header.substr(0, 36) + std::string(16, '0') + "-01"), "");
}

TEST(TraceIdTest, AcceptsPlainIdsThatBreakNoLine) {
  for (const std::string& id : {std::string(kTrace), std::string("463ac35c9f6413ad"),
                                std::string("1.23.15988:7_a-B"), std::string(64, 'f')}) {
    EXPECT_TRUE(IsPlainTraceId(id)) << id;
  }
  for (const std::string& text :
       {std::string(), std::string("a b"), std::string("a\nb"), std::string("\xc3\xa9"),
        std::string("a,b"), std::string(1, '\0'), std::string(65, 'f')}) {
    EXPECT_FALSE(IsPlainTraceId(text)) << testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace firn::front
