#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "server/front/dubbo/hessian_reader.h"
#include "server/front/dubbo/hessian_writer.h"

using namespace std::string_view_literals;

namespace firn::front {
namespace {

std::string FaultOf(std::string_view bytes) {
  HessianReader reader(bytes);
  while (reader.ok() && reader.position() < bytes.size()) reader.Skip();
  return std::string(reader.fault());
}

int64_t WholeIn(std::string_view bytes) {
  HessianReader reader(bytes);
  int64_t number = 0;
  EXPECT_TRUE(reader.Whole(number)) << reader.fault();
  EXPECT_EQ(reader.position(), bytes.size());
  return number;
}

std::string TextIn(std::string_view bytes, size_t bytes_max = 100'000) {
  HessianReader reader(bytes);
  std::string text;
  EXPECT_TRUE(reader.Text(text, bytes_max)) << reader.fault();
  EXPECT_EQ(reader.position(), bytes.size());
  return text;
}

// Examples of the specification.
TEST(HessianReaderTest, ReadsEveryFormOfIntAndLong) {
  EXPECT_EQ(WholeIn("\x90"), 0);
  EXPECT_EQ(WholeIn("\x80"), -16);
  EXPECT_EQ(WholeIn("\xbf"), 47);
  EXPECT_EQ(WholeIn("\xc8\x00"sv), 0);
  EXPECT_EQ(WholeIn("\xc0\x00"sv), -2048);
  EXPECT_EQ(WholeIn("\xcf\xff"), 2047);
  EXPECT_EQ(WholeIn("\xd0\x00\x00"sv), -262'144);
  EXPECT_EQ(WholeIn("\xd7\xff\xff"), 262'143);
  EXPECT_EQ(WholeIn("I\xff\xff\xff\xff"), -1);
  EXPECT_EQ(WholeIn("\xe0"), 0);
  EXPECT_EQ(WholeIn("\xd8"), -8);
  EXPECT_EQ(WholeIn("\xef"), 15);
  EXPECT_EQ(WholeIn("\xf0\x00"sv), -2048);
  EXPECT_EQ(WholeIn("\xf7\x00"sv), -256);
  EXPECT_EQ(WholeIn("\xff\xff"), 2047);
  EXPECT_EQ(WholeIn("\x38\x00\x00"sv), -262'144);
  EXPECT_EQ(WholeIn("\x3f\xff\xff"), 262'143);
  EXPECT_EQ(WholeIn("\x59\x00\x00\x01\x2c"sv), 300);
  EXPECT_EQ(WholeIn("L\x00\x00\x00\x00\x00\x00\x01\x2c"sv), 300);
}

TEST(HessianReaderTest, ReadsEveryFormOfString) {
  EXPECT_EQ(TextIn("\x00"sv), "");
  EXPECT_EQ(TextIn("N"), "");
  EXPECT_EQ(TextIn("\x05hello"), "hello");
  EXPECT_EQ(TextIn("\x01\xc3\x83"), "\xc3\x83");
  EXPECT_EQ(TextIn("\x30\x05hello"), "hello");
  EXPECT_EQ(TextIn("S\x00\x05hello"sv), "hello");
  EXPECT_EQ(TextIn("R\x00\x07hello, S\x00\x05world"sv), "hello, world");
  // U+1F600: two surrogates of three bytes each.
  EXPECT_EQ(TextIn("\x02\xed\xa0\xbd\xed\xb8\x80"), "\xf0\x9f\x98\x80");
}

TEST(HessianReaderTest, RefusesStringsThatAreTooLongOrHalf) {
  std::string text;
  EXPECT_FALSE(HessianReader("\x05hello").Text(text, 4));
  EXPECT_FALSE(HessianReader("\x01\xed\xa0\xbd").Text(text, 100)) << "half a character";
  EXPECT_FALSE(HessianReader("\x01\xed\xb8\x80").Text(text, 100)) << "the other half";
  EXPECT_FALSE(HessianReader("\x01\xff").Text(text, 100));
  EXPECT_FALSE(HessianReader("\x05hell").Text(text, 100));
  EXPECT_FALSE(HessianReader("R\x00\x01zI\x00\x00\x00\x01"sv).Text(text, 100));
  HessianReader reader("S\xff\xff");
  EXPECT_FALSE(reader.Text(text, 100));
  EXPECT_EQ(reader.fault(), "a string that is too long");
}

TEST(HessianReaderTest, SkipsEveryKindOfValue) {
  for (const std::string_view bytes : {"N"sv,
                                       "T"sv,
                                       "F"sv,
                                       "\x5b"sv,
                                       "\x5c"sv,
                                       "\x5d\x01"sv,
                                       "\x5e\x01\x02"sv,
                                       "\x5f\x01\x02\x03\x04"sv,
                                       "D\x40\x28\x80\x00\x00\x00\x00\x00"sv,
                                       "\x4a\x00\x00\x00\xd0\x4b\x92\x84\xb8"sv,
                                       "\x4b\x00\xe3\x83\x8f"sv,
                                       "\x22xy"sv,
                                       "\x34\x02xy"sv,
                                       "B\x00\x02xy"sv,
                                       "A\x00\x01x\x21y"sv,
                                       "\x57\x90\x91Z"sv,
                                       "\x55\x04[intZ"sv,
                                       "V\x04[int\x92\x90\x91"sv,
                                       "\x58\x92\x90\x91"sv,
                                       "\x72\x04[int\x90\x91"sv,
                                       "\x7a\x90\x91"sv,
                                       "V\x90\x90"sv,
                                       "H\x01"
                                       "a\x90Z"sv,
                                       "M\x03map\x01"
                                       "a\x7a\x90HZZ"sv}) {
    EXPECT_EQ(FaultOf(bytes), "") << testing::PrintToString(bytes);
    const std::string_view half = bytes.substr(0, bytes.size() - 1);
    if (half.empty()) continue;
    EXPECT_NE(FaultOf(half), "") << testing::PrintToString(half);
  }
}

TEST(HessianReaderTest, FollowsNoReferenceAndNoClass) {
  EXPECT_EQ(FaultOf("\x51\x90"), "a reference to an earlier value");
  EXPECT_EQ(FaultOf("C\x01"
                    "A\x91\x01"
                    "b\x60\x90"),
            "an object of a class, which is not supported");
  EXPECT_EQ(FaultOf("O\x90\x90"), "an object of a class, which is not supported");
  EXPECT_EQ(FaultOf("H\x01"
                    "a\x51\x90Z"),
            "a reference to an earlier value");
}

TEST(HessianReaderTest, SkipsObjectsReferencesAndLongListsIfAsked) {
  const auto fault = [](std::string_view bytes) {
    HessianReader reader(bytes);
    reader.SkipAny();
    return std::string(reader.ok() && reader.position() < bytes.size() ? "bytes left"
                                                                       : reader.fault());
  };
  const std::string level = "C\x05Level\x91\x04name", uuid = "C\x04UUID\x92\x03msb\x03lsb";
  EXPECT_EQ(fault(level + "\x60\x04INFO"), "");
  EXPECT_EQ(fault("\x7b" + level + "\x60\x04INFO" + "\x60\x04WARN" + uuid + "O\x91\xe1\xe2"), "");
  EXPECT_EQ(fault(level + uuid + "\x61\xe1\x60\x04INFO"), "") << "an object in another";
  EXPECT_EQ(fault("\x51\x90"), "");
  EXPECT_EQ(fault("\x58\xc9\x2c" + std::string(300, '\x90')), "");
  EXPECT_EQ(fault("\x58I\x7f\xff\xff\xff"), "a list that is too long");
  EXPECT_EQ(fault("\x60"), "an object of no class");
  EXPECT_EQ(fault("C\x01"
                  "A\xd1\x00\x00"sv),
            "too many classes or fields");
  for (size_t size = 1; size < level.size() + 6; ++size) {
    EXPECT_NE(fault((level + "\x60\x04INFO").substr(0, size)), "") << size;
  }
  std::string many;
  for (size_t i = 0; i <= HessianReader::kClassesMax; ++i)
    many +=
        "C\x01"
        "A\x90";
  EXPECT_EQ(fault(many + "\x60"), "too many classes or fields");
}

TEST(HessianReaderTest, BoundsDepthAndItems) {
  const auto nested = [](size_t depth) { return std::string(depth, '\x79') + '\x90'; };
  EXPECT_EQ(FaultOf(nested(HessianReader::kDepthMax)), "");
  EXPECT_EQ(FaultOf(nested(HessianReader::kDepthMax + 1)), "containers that are nested too deeply");
  EXPECT_EQ(FaultOf("\x58I\x7f\xff\xff\xff"), "a list that is too long");
  EXPECT_EQ(FaultOf("\x58I\xff\xff\xff\xff"), "a list that is too long");
  EXPECT_EQ(FaultOf("\x57" + std::string(10'000, '\x90') + "Z"), "a container with too many items");
}

TEST(HessianReaderTest, ReadsListsAndMaps) {
  HessianReader reader(
      "\x72\x07[string\x01"
      "a\x01"
      "bH\x01k\x91Z");
  size_t items = 0;
  std::string text;
  int64_t number = 0;
  ASSERT_TRUE(reader.List(items));
  ASSERT_EQ(items, 2);
  EXPECT_TRUE(reader.Text(text, 10) && reader.Text(text, 10));
  ASSERT_TRUE(reader.Map());
  ASSERT_TRUE(reader.NextEntry());
  EXPECT_TRUE(reader.Text(text, 10) && reader.Whole(number));
  EXPECT_EQ(text, "k");
  EXPECT_EQ(number, 1);
  EXPECT_FALSE(reader.NextEntry());
  EXPECT_TRUE(reader.ok());
}

// --- the writer ---------------------------------------------------------------------------------

template <typename Write>
std::string Written(Write&& write) {
  std::string bytes;
  HessianWriter writer(bytes);
  write(writer);
  return bytes;
}

TEST(HessianWriterTest, WritesNumbersThatAreReadAgain) {
  SeededEntropy entropy{1};
  std::vector<int64_t> numbers{0,
                               -1,
                               15,
                               16,
                               -8,
                               -9,
                               std::numeric_limits<int64_t>::max(),
                               std::numeric_limits<int64_t>::min()};
  for (int i = 0; i < 1000; ++i) {
    numbers.push_back(static_cast<int64_t>(entropy.Next() >> entropy.Below(64)));
  }
  for (const int64_t number : numbers) {
    EXPECT_EQ(WholeIn(Written([&](HessianWriter& out) { out.Long(number); })), number);
    const auto small = static_cast<int32_t>(number);
    EXPECT_EQ(WholeIn(Written([&](HessianWriter& out) { out.Int(small); })), small);
  }
}

TEST(HessianWriterTest, WritesTextsThatAreReadAgain) {
  SeededEntropy entropy{1};
  const std::vector<std::string> characters{"a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
  for (const int length : {0, 1, 15, 31, 32, 33, 1023, 1024, 32'766, 32'767, 32'768, 70'000}) {
    std::string text;
    for (int i = 0; i < length; ++i) text += characters[entropy.Below(characters.size())];
    const std::string bytes = Written([&](HessianWriter& out) { out.Text(text); });
    EXPECT_EQ(TextIn(bytes, 300'000), text) << length;
  }
  EXPECT_EQ(Written([](HessianWriter& out) { out.Text("a\xff\xe2\x82"); }),
            "\x04"
            "a???");
  for (const std::string invalid :
       {"\xed\xa0\x80", "\xed\xbf\xbf", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80"}) {
    const std::string bytes = Written([&](HessianWriter& out) { out.Text(invalid); });
    EXPECT_EQ(TextIn(bytes), std::string(invalid.size(), '?')) << testing::PrintToString(invalid);
  }
}

TEST(HessianWriterTest, WritesContainersThatAreReadAgain) {
  const std::string bytes = Written([](HessianWriter& out) {
    out.List(9);
    for (int64_t i = 0; i < 9; ++i) out.Long(i);
    out.ListOf("[string", 2);
    out.Text("a");
    out.Text("b");
    out.BeginMap();
    out.Text("k");
    out.Date(1'432'305'664'000);
    out.EndMap();
    out.Null();
  });
  EXPECT_EQ(FaultOf(bytes), "");
}

}  // namespace
}  // namespace firn::front
