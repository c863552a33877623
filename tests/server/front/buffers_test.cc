#include "server/front/net/buffers.h"

#include <string>

#include <gtest/gtest.h>

namespace firn::front {
namespace {

void Fill(InBuffer& buffer, std::string_view bytes) {
  const std::span<char> room = buffer.MakeRoom(0, 100'000);
  ASSERT_GE(room.size(), bytes.size());
  std::memcpy(room.data(), bytes.data(), bytes.size());
  buffer.Filled(bytes.size());
}

TEST(OutBufferTest, AppendsAtTheEndAndRemovesFromTheFront) {
  OutBuffer buffer;
  std::string all;
  for (int i = 0; i < 10'000; ++i) {
    buffer.Append(std::to_string(i));
    all += std::to_string(i);
    if (i % 3 == 0) {
      buffer.Consume(1);
      all.erase(0, 1);
    }
  }
  EXPECT_EQ(buffer.view(), all);
}

TEST(OutBufferTest, PatchesAndTruncatesAfterItsFrontWasRemoved) {
  OutBuffer buffer;
  buffer.Append("gone");
  buffer.Append("abcdef");
  buffer.Consume(4);
  buffer.Patch(1, "XY", 2);
  buffer.Truncate(4);
  EXPECT_EQ(buffer.view(), "aXYd");
}

TEST(OutBufferTest, KeepsItsBytesInPlaceWhenMoved) {
  OutBuffer waiting, sending;
  waiting.Append("answer");
  const char* const at = waiting.view().data();
  std::swap(waiting, sending);
  EXPECT_TRUE(waiting.empty());
  waiting.Append(std::string(100'000, 'x'));
  EXPECT_EQ(sending.view().data(), at);
  EXPECT_EQ(sending.view(), "answer");
}

TEST(InBufferTest, IsEmptyAfterAMove) {
  InBuffer buffer;
  Fill(buffer, "half");
  InBuffer handed = std::move(buffer);
  EXPECT_TRUE(buffer.empty());
  EXPECT_TRUE(buffer.room().empty());
  Fill(buffer, "new");
  EXPECT_EQ(handed.view(), "half");
}

TEST(InBufferTest, MovesAnIncompleteRequestToTheFront) {
  InBuffer buffer;
  Fill(buffer, "one,tw");
  buffer.Consume(4);
  Fill(buffer, "o");
  EXPECT_EQ(buffer.view(), "two");
}

TEST(InBufferTest, MakesRoomForAWholeRequestOnceAQuarterIsThere) {
  InBuffer buffer;
  Fill(buffer, "begin");
  EXPECT_LE(buffer.MakeRoom(60'000, 100'000).size(), Buffer::kFirst) << "only its length is known";
  while (4 * buffer.size() < 60'000) buffer.Filled(buffer.MakeRoom(60'000, 100'000).size());
  const size_t size = buffer.size();
  EXPECT_GE(buffer.MakeRoom(60'000, 100'000).size(), 60'000u - size);
  EXPECT_TRUE(buffer.view().starts_with("begin"));
}

TEST(InBufferTest, GrowsAfterAReadThatFilledItUpToItsLimit) {
  InBuffer buffer;
  size_t all = 0;
  while (true) {
    const size_t room = buffer.MakeRoom(0, 50'000).size();
    if (room == 0) break;
    buffer.Filled(room);
    all += room;
    ASSERT_LE(all, 50'000u);
  }
  EXPECT_EQ(all, 50'000u);
  EXPECT_EQ(buffer.view().size(), 50'000u);
}

TEST(InBufferTest, ReleasesMemoryAfterManySmallReads) {
  InBuffer buffer;
  while (buffer.size() < 60'000) buffer.Filled(buffer.MakeRoom(0, 60'000).size());
  buffer.Consume(60'000);
  for (int i = 0; i < 100; ++i) {
    Fill(buffer, "small");
    buffer.Consume(5);
  }
  EXPECT_LE(buffer.MakeRoom(0, 100'000).size(), 4096u);
}

}  // namespace
}  // namespace firn::front
