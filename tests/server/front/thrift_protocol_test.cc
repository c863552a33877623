#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <thrift/TApplicationException.h>

#include "tests/server/front/thrift_protocol_rig.h"
#include "tests/support/allocations.h"

namespace firn::front {
namespace {

using std::string_literals::operator""s;

INSTANTIATE_TEST_SUITE_P(Codings, ThriftProtocolTest,
                         testing::Values(ThriftCoding::kBinary, ThriftCoding::kCompact),
                         [](const auto& coding) {
                           return coding.param == ThriftCoding::kBinary ? "Binary" : "Compact";
                         });

TEST_P(ThriftProtocolTest, ServesTheFirstOfManyFrames) {
  const std::string first = calls_.GetId("order");
  const ServeStep step = Serve(first + calls_.GetId("order"));
  EXPECT_EQ(step.kind, Kind::kServed);
  EXPECT_EQ(step.bytes, first.size());
  EXPECT_GT(calls_.Answer(out_.view()).recv_getId(), 0);
}

TEST_P(ThriftProtocolTest, WaitsForTheRestOfEveryTornFrame) {
  const std::string frame = calls_.GetId("order");
  for (size_t n = 1; n < frame.size(); ++n) {
    const ServeStep step = Serve(frame.substr(0, n));
    EXPECT_EQ(step.kind, Kind::kNeedMore) << n;
    if (n >= 4) {
      EXPECT_EQ(step.bytes, frame.size()) << n;
    }
    EXPECT_TRUE(out_.empty()) << n;
  }
}

TEST_P(ThriftProtocolTest, ClosesOnEveryFrameThatEndsTooEarly) {
  const std::string frame = calls_.GetId("order");
  for (size_t n = 1; n + 4 < frame.size(); ++n) {
    const std::string torn = ThriftCalls::WithLength(frame.substr(4, n));
    const ServeStep step = Serve(torn);
    EXPECT_EQ(step.kind, Kind::kClose) << n;
    EXPECT_EQ(step.cause, CloseCause::kBadFrame) << n;
  }
  EXPECT_GT(Call(frame).recv_getId(), 0);
}

TEST_P(ThriftProtocolTest, ClosesOnAFrameBeyondTheLimitBeforeItHasArrived) {
  ExpectClosed("\0\1\0\1"s, CloseCause::kFrameTooLarge);
  EXPECT_EQ(Serve("\0\1\0\0"s).kind, Kind::kNeedMore);
}

TEST_P(ThriftProtocolTest, ClosesOnAnEmptyFrame) {
  ExpectClosed("\0\0\0\0"s, CloseCause::kBadFrame);
}

TEST_P(ThriftProtocolTest, ClosesOnAStringBeyondTheLimit) {
  ExpectClosed(calls_.GetId(std::string(1025, 't')), CloseCause::kBadFrame);
}

TEST_P(ThriftProtocolTest, ClosesOnAListBeyondTheLimit) {
  // In field 99, which no method has.
  const std::string ping = GetParam() == ThriftCoding::kBinary
                               ? "\x80\1\0\1\0\0\0\4ping\0\0\0\1\x0f\0\x63\x03\0\0\0"s
                               : "\x82\x21\0\4ping\x09\xc6\1\xf3"s;
  const auto call = [&](char items) {
    return ThriftCalls::WithLength(ping + items + std::string(static_cast<size_t>(items), 'x') +
                                   "\0"s);
  };
  EXPECT_EQ(Serve(call(16)).kind, Kind::kServed);
  ExpectClosed(call(17), CloseCause::kBadFrame);
}

TEST_P(ThriftProtocolTest, RefusesACallForTooManyIds) {
  std::vector<int64_t> ids;
  const auto list = calls_.Frame([](wire::IdServiceClient& c) { c.send_getIds("slow", 100'001); });
  EXPECT_THROW(Call(list).recv_getIds(ids), wire::Refusal);
  std::vector<wire::IdRun> runs;
  const auto most =
      calls_.Frame([](wire::IdServiceClient& c) { c.send_getRuns("slow", 10'000'001); });
  EXPECT_THROW(Call(most).recv_getRuns(runs), wire::Refusal);
}

TEST_P(ThriftProtocolTest, ClosesOnAReplyInPlaceOfACall) {
  std::string reply = calls_.GetId("order");
  // The message's type: the fourth byte in binary, the upper bits of the second in compact.
  if (GetParam() == ThriftCoding::kBinary) {
    reply[7] = 2;
  } else {
    reply[5] = static_cast<char>((reply[5] & 0x1f) | (2 << 5));
  }
  ExpectClosed(reply, CloseCause::kBadFrame);
}

TEST_P(ThriftProtocolTest, ServesTagsUpToTheStringLimit) {
  EXPECT_THROW(Call(calls_.GetId(std::string(1024, 't'))).recv_getId(), wire::Refusal);
}

TEST_P(ThriftProtocolTest, AnswersAnUnknownMethodWithAnError) {
  std::string frame = calls_.GetId("order");
  frame.replace(frame.find("getId"), 5, "gotId");
  EXPECT_THROW(Call(frame).recv_getId(), apache::thrift::TApplicationException);
  EXPECT_GT(Call(calls_.GetId("order")).recv_getId(), 0);
}

TEST_P(ThriftProtocolTest, ParksACallAndResumesIt) {
  issuing_.slow->waits = true;
  const std::string frame = calls_.GetId("slow");
  ServeStep step = Serve(frame);
  EXPECT_EQ(step.kind, Kind::kPark);
  EXPECT_EQ(step.again_us, 100);
  EXPECT_TRUE(out_.empty());
  EXPECT_NE(waiting_.request, nullptr);

  issuing_.slow->waits = false;
  step = Serve(frame);
  EXPECT_EQ(step.kind, Kind::kServed);
  EXPECT_EQ(calls_.Answer(out_.view()).recv_getId(), 1);
}

TEST_P(ThriftProtocolTest, RefusesAParkedCallAtItsLastAttempt) {
  issuing_.slow->waits = true;
  const std::string frame = calls_.GetId("slow");
  EXPECT_EQ(Serve(frame).kind, Kind::kPark);
  EXPECT_EQ(Serve(frame, true).kind, Kind::kServed);
  try {
    calls_.Answer(out_.view()).recv_getId();
    FAIL() << "no refusal";
  } catch (const wire::Refusal& refusal) {
    EXPECT_EQ(refusal.reason, wire::Reason::OVERLOADED);
  }
}

TEST_P(ThriftProtocolTest, CancelsAParkedCallWithItsConnection) {
  issuing_.slow->waits = true;
  EXPECT_EQ(Serve(calls_.GetId("slow")).kind, Kind::kPark);
  EXPECT_EQ(issuing_.rejections.refused, 0);
  waiting_ = {};
  EXPECT_EQ(issuing_.rejections.refused, 1);
}

TEST_P(ThriftProtocolTest, AllocatesNothingForACallInTheSteadyState) {
  const std::string frame = calls_.GetId("slow");
  const auto serve = [&] {
    out_.Clear();
    for (int i = 0; i < 64; ++i) ASSERT_EQ(Serve(frame).kind, Kind::kServed);
  };
  serve();
  const int64_t before = Allocations();
  for (int i = 0; i < 100; ++i) serve();
  EXPECT_EQ(Allocations(), before);
}

TEST_P(ThriftProtocolTest, ConcurrentStatusCallsShareOneReport) {
  issuing_.view.more_tags_ = 998;
  const auto another = MakeThriftProtocol(GetParam(), issuing_.backend, issuing_.counters);
  const std::string frame =
      calls_.Frame([](wire::IdServiceClient& client) { client.send_status(); });
  const auto ask = [&] {
    door_ = {};  // each on a new connection
    wire::ServerStatus status;
    Call(frame).recv_status(status);
    return status;
  };
  const wire::ServerStatus first = ask();
  EXPECT_EQ(first.tags.size(), 1000u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ask(), first);
    DoorCall door;
    OutBuffer out;
    another->Serve(frame, door, out);
    EXPECT_EQ(out.view(), out_.view());
  }
  EXPECT_EQ(issuing_.view.reports, 1);
  issuing_.clock.Advance(Milliseconds(249));
  EXPECT_EQ(ask(), first);
  issuing_.clock.Advance(Milliseconds(1));
  EXPECT_EQ(ask(), first);
  EXPECT_EQ(issuing_.view.reports, 2) << "a thousand tags are collected four times a second";
}

TEST_P(ThriftProtocolTest, SendsEachReportOnceToAConnectionThatAsksWithoutPause) {
  issuing_.view.more_tags_ = 998;
  const std::string frame =
      calls_.Frame([](wire::IdServiceClient& client) { client.send_status(); });
  EXPECT_EQ(Serve(frame).kind, Kind::kServed);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Serve(frame).kind, Kind::kPark);
  waiting_ = {};
  EXPECT_EQ(Serve(calls_.GetId("slow")).kind, Kind::kServed) << "nothing was left behind";
  EXPECT_EQ(Serve(frame).kind, Kind::kPark);
  EXPECT_EQ(Serve(frame, true).kind, Kind::kServed) << "it has waited long enough";
  EXPECT_EQ(Serve(frame).kind, Kind::kPark);
  issuing_.clock.Advance(Milliseconds(250));
  EXPECT_EQ(Serve(frame).kind, Kind::kServed);
  issuing_.view.state_ = ServerPhase::kDraining;
  EXPECT_EQ(Serve(frame).kind, Kind::kServed) << "a change is sent at once";
}

TEST_P(ThriftProtocolTest, AChangeOfTheServerShowsInTheNextStatus) {
  const std::string frame =
      calls_.Frame([](wire::IdServiceClient& client) { client.send_status(); });
  const auto ask = [&] {
    wire::ServerStatus status;
    Call(frame).recv_status(status);
    return status;
  };
  EXPECT_EQ(ask().state, wire::ServerState::READY);
  issuing_.view.state_ = ServerPhase::kDraining;
  EXPECT_EQ(ask().state, wire::ServerState::DRAINING);
  issuing_.view.machine_.reset();
  EXPECT_FALSE(ask().__isset.machine);
  EXPECT_EQ(issuing_.view.reports, 3);
}

class BinaryFrameTest : public ThriftProtocolTest {};
INSTANTIATE_TEST_SUITE_P(Binary, BinaryFrameTest, testing::Values(ThriftCoding::kBinary));

// A getId call whose argument struct is `fields`.
std::string CallWith(std::string_view fields) {
  return ThriftCalls::WithLength("\x80\1\0\1\0\0\0\5getId\0\0\0\1"s + std::string(fields));
}

TEST_P(BinaryFrameTest, ClosesOnClaimedSizesWithoutAllocatingThem) {
  const int64_t before = Allocations();
  // Strings, lists and maps that claim up to 2^31 - 1 items, in the tag and in unknown fields.
  for (const char* size : {"\x05\xa9\x80\x40", "\x7f\xff\xff\xff", "\xff\xff\xff\xff"}) {
    const std::string claimed(size, 4);
    ExpectClosed(CallWith("\x0b\0\1"s + claimed + "abc"), CloseCause::kBadFrame);
    ExpectClosed(CallWith("\x0b\0\x63"s + claimed + "abc"), CloseCause::kBadFrame);
    ExpectClosed(CallWith("\x0f\0\x63\x0a"s + claimed), CloseCause::kBadFrame);
    ExpectClosed(CallWith("\x0d\0\x63\x0b\x0b"s + claimed), CloseCause::kBadFrame);
  }
  EXPECT_LT(Allocations() - before, 2000);
}

TEST_P(BinaryFrameTest, ClosesOnContainersBeyondTheLimit) {
  // An unknown field with a list of 17 bytes.
  ExpectClosed(CallWith("\x0f\0\x63\3\0\0\0\x11"s + std::string(17, 'x') + "\0"s),
               CloseCause::kBadFrame);
  const std::string sixteen = CallWith("\x0f\0\x63\3\0\0\0\x10"s + std::string(16, 'x') + "\0"s);
  EXPECT_EQ(Serve(sixteen).kind, Kind::kServed);
}

TEST_P(BinaryFrameTest, ClosesOnTooDeepNesting) {
  std::string nested;
  for (int i = 0; i < 10'000; ++i) nested += "\x0c\0\x63"s;
  ExpectClosed(CallWith(nested), CloseCause::kBadFrame);
}

TEST_P(BinaryFrameTest, ClosesOnTheOldFormWithoutAVersion) {
  ExpectClosed(ThriftCalls::WithLength("\0\0\0\5getId\1\0\0\0\1\0"s), CloseCause::kBadFrame);
}

}  // namespace
}  // namespace firn::front
