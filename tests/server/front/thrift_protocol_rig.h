#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "server/front/thrift/thrift_protocol.h"
#include "tests/server/front/form.h"
#include "tests/server/front/issuing_fixture.h"
#include "tests/server/front/thrift_calls.h"

namespace firn::front {

class ThriftProtocolTest : public testing::TestWithParam<ThriftCoding> {
 protected:
  using Kind = ServeStep::Kind;

  void SetUp() override {
    if (const auto why = SenselessHere(); !why.empty()) GTEST_SKIP() << why;
  }

  ServeStep Serve(std::string_view in, bool last = false) {
    door_.last = last;
    return ServeInForm(*protocol_, waiting_, in, door_, out_, issuing_.slow->next);
  }
  // Serves one request and returns the client that is about to receive the answer.
  wire::IdServiceClient& Call(std::string_view frame) {
    out_.Clear();
    const ServeStep step = Serve(frame);
    EXPECT_EQ(step.kind, Kind::kServed);
    EXPECT_EQ(step.bytes, frame.size());
    return calls_.Answer(out_.view());
  }
  void ExpectClosed(std::string_view in, CloseCause cause) {
    out_.Clear();
    const ServeStep step = Serve(in);
    EXPECT_EQ(step.kind, Kind::kClose);
    EXPECT_EQ(CloseCauseName(step.cause), CloseCauseName(cause));
    EXPECT_TRUE(out_.empty());
    EXPECT_GT(Call(calls_.GetId("order")).recv_getId(), 0) << "the next connection is served";
  }

  Issuing issuing_;
  std::unique_ptr<Protocol> protocol_ =
      MakeThriftProtocol(GetParam(), issuing_.backend, issuing_.counters);
  DoorCall door_;
  Waiting waiting_;
  OutBuffer out_;
  ThriftCalls calls_{GetParam()};
};

}  // namespace firn::front
