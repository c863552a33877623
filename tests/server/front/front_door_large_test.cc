// Requests and answers larger than one read, one TLS record or a socket's buffer.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/server/front/front_door_rig.h"

namespace firn::front {
namespace {

TEST_F(FrontDoorTest, AnswersAllRequestsOfOneWriteAndNoMore) {
  Open();
  Peer peer(door_->port());
  ThriftCalls calls;
  std::string many;
  constexpr int kCalls = 300;
  for (int i = 0; i < kCalls; ++i) many += calls.GetId("slow");
  ASSERT_TRUE(peer.Send(many));
  for (int i = 1; i <= kCalls; ++i) {
    ASSERT_EQ(calls.Answer(peer.ReceiveFrame()).recv_getId(), Number(i));
  }
}

TEST_F(FrontDoorTest, SendsLargeAnswersWholeToASlowReader) {
  Open();
  Peer peer(door_->port());
  ThriftCalls calls;
  constexpr int64_t kIds = 100'000;
  constexpr int kCalls = 20;  // more than the buffers of both ends hold
  const std::string one =
      calls.Frame([](wire::IdServiceClient& c) { c.send_getIds("slow", kIds); });
  for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(peer.Send(one));
  for (int i = 1; i <= kCalls; ++i) {
    std::vector<int64_t> ids;
    calls.Answer(peer.ReceiveFrame()).recv_getIds(ids);
    ASSERT_EQ(ids.size(), static_cast<size_t>(kIds));
    for (int64_t k = 0; k < kIds; ++k) {
      ASSERT_EQ(ids[static_cast<size_t>(k)], Number(i) * kIds - kIds + 1 + k) << "answer " << i;
    }
  }
}

}  // namespace
}  // namespace firn::front
