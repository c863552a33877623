#include "server/front/thrift/thrift_protocol.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <thrift/TApplicationException.h>

#include "tests/server/front/issuing_fixture.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/support/allocations.h"

namespace firn::front {
namespace {

using Kind = ServeStep::Kind;
using std::string_literals::operator""s;

class ThriftProtocolTest : public testing::TestWithParam<ThriftCoding> {
 protected:
  ServeStep Serve(std::string_view in, bool last = false) {
    door_.last = last;
    return protocol_->Serve(in, door_, out_);
  }
  // Serves one request and hands out the client that is about to receive the answer.
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
  OutBuffer out_;
  ThriftCalls calls_{GetParam()};
};

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

TEST_P(ThriftProtocolTest, ClosesAtEveryFrameThatEndsTooEarly) {
  const std::string frame = calls_.GetId("order");
  for (size_t n = 1; n + 4 < frame.size(); ++n) {
    const std::string torn = ThriftCalls::WithLength(frame.substr(4, n));
    const ServeStep step = Serve(torn);
    EXPECT_EQ(step.kind, Kind::kClose) << n;
    EXPECT_EQ(step.cause, CloseCause::kBadFrame) << n;
  }
  EXPECT_GT(Call(frame).recv_getId(), 0);
}

TEST_P(ThriftProtocolTest, ClosesAtAFrameBeyondTheLimitBeforeItHasArrived) {
  ExpectClosed("\0\1\0\1"s, CloseCause::kFrameTooLarge);
  EXPECT_EQ(Serve("\0\1\0\0"s).kind, Kind::kNeedMore);
}

TEST_P(ThriftProtocolTest, ClosesAtAnEmptyFrame) {
  ExpectClosed("\0\0\0\0"s, CloseCause::kBadFrame);
}

TEST_P(ThriftProtocolTest, ClosesAtAStringBeyondTheLimit) {
  ExpectClosed(calls_.GetId(std::string(1025, 't')), CloseCause::kBadFrame);
}

TEST_P(ThriftProtocolTest, ClosesAtAReplyInPlaceOfACall) {
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

TEST_P(ThriftProtocolTest, ParksACallAndGoesOnWithIt) {
  issuing_.slow->waits = true;
  const std::string frame = calls_.GetId("slow");
  ServeStep step = Serve(frame);
  EXPECT_EQ(step.kind, Kind::kPark);
  EXPECT_EQ(step.again_us, 100);
  EXPECT_TRUE(out_.empty());
  EXPECT_NE(door_.parked, nullptr);

  issuing_.slow->waits = false;
  step = Serve(frame);
  EXPECT_EQ(step.kind, Kind::kServed);
  EXPECT_EQ(calls_.Answer(out_.view()).recv_getId(), 1);
  EXPECT_EQ(door_.parked, nullptr);
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
  EXPECT_EQ(door_.parked, nullptr);
}

TEST_P(ThriftProtocolTest, GivesUpAParkedCallWithItsConnection) {
  issuing_.slow->waits = true;
  EXPECT_EQ(Serve(calls_.GetId("slow")).kind, Kind::kPark);
  EXPECT_EQ(issuing_.rejections.refused, 0);
  door_ = {};
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

// A call that has been answered before is answered by its bytes. Each must be told what a protocol
// says that has never seen it.
class SameCallAgainTest : public ThriftProtocolTest {
 protected:
  std::string GetId(const std::string& tag, int32_t sequence) {
    std::string frame = calls_.GetId(tag);
    // Generated clients write 0: four bytes behind the name, or one before it.
    if (GetParam() == ThriftCoding::kBinary) {
      for (size_t i = 0; i < 4; ++i) {
        frame[4 + 13 + i] = static_cast<char>(static_cast<uint32_t>(sequence) >> (24 - 8 * i));
      }
      return frame;
    }
    std::string body = frame.substr(4, 2);
    uint32_t rest = static_cast<uint32_t>(sequence);
    for (; rest >= 0x80; rest >>= 7) body.push_back(static_cast<char>(rest | 0x80));
    body.push_back(static_cast<char>(rest));
    return ThriftCalls::WithLength(body + frame.substr(7));
  }

  // What was answered, after it has been compared with a newcomer's answer: the id, or the reason
  // of the refusal as a negative number.
  int64_t Ask(const std::string& frame) {
    out_.Clear();
    EXPECT_EQ(Serve(frame).kind, Kind::kServed);
    const std::string answer(out_.view());
    const int64_t got = Read(answer);

    const auto newcomer = MakeThriftProtocol(GetParam(), issuing_.backend, issuing_.counters);
    OutBuffer out;
    DoorCall door{.client = {}, .last = true};
    EXPECT_EQ(newcomer->Serve(frame, door, out).kind, Kind::kServed);
    const int64_t other = Read(std::string(out.view()));
    EXPECT_EQ(got < 0, other < 0);
    EXPECT_TRUE(got < 0 || got != other) << "the same id twice";
    EXPECT_EQ(WithoutId(answer), WithoutId(std::string(out.view())));
    return got;
  }

 private:
  int64_t Read(const std::string& answer) {
    try {
      return calls_.Answer(answer).recv_getId();
    } catch (const wire::Refusal& refusal) {
      return -static_cast<int64_t>(refusal.reason);
    }
  }
  // The id stands at the end of an answer, and in compact coding it may be of any length.
  std::string WithoutId(const std::string& answer) {
    return answer.substr(4, answer.find("getId") + (GetParam() == ThriftCoding::kBinary ? 8 : 3));
  }
};

INSTANTIATE_TEST_SUITE_P(Codings, SameCallAgainTest,
                         testing::Values(ThriftCoding::kBinary, ThriftCoding::kCompact),
                         [](const auto& coding) {
                           return coding.param == ThriftCoding::kBinary ? "Binary" : "Compact";
                         });

TEST_P(SameCallAgainTest, IsAnsweredWithItsOwnSequenceIdAndANewId) {
  for (const int32_t sequence : {0, 0, 1, 127, 128, 16'384, INT32_MAX, -1, INT32_MIN, 0}) {
    EXPECT_GT(Ask(GetId("order", sequence)), 0) << sequence;
    EXPECT_GT(Ask(GetId("slow", sequence)), 0) << sequence;
  }
}

TEST_P(SameCallAgainTest, IsAnsweredForTheTagThatItNames) {
  // More tags than are remembered: some of one length, all alike at their ends.
  const auto Name = [](int i) {
    return std::string(static_cast<size_t>(i / 3), 'x') + "abc"[i % 3] + "-tag-of-them";
  };
  std::vector<std::shared_ptr<ScriptedStrategy>> strategies;
  for (int i = 0; i < 100; ++i) {
    strategies.push_back(std::make_shared<ScriptedStrategy>());
    strategies.back()->next = 1'000'000 * (i + 1);
    ASSERT_TRUE(issuing_.issuer.Set({Name(i), strategies.back(), {}}).ok());
  }
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(Ask(GetId(Name(i), round)) / 1'000'000, i + 1);
      EXPECT_EQ(Ask(GetId(Name(i), round)) / 1'000'000, i + 1);
    }
  }
}

TEST_P(SameCallAgainTest, IsRefusedOnceTheTagIsGoneAndServedOnceItIsBack) {
  EXPECT_GT(Ask(GetId("slow", 1)), 0);
  EXPECT_GT(Ask(GetId("slow", 2)), 0);
  issuing_.issuer.Remove("slow");
  EXPECT_EQ(Ask(GetId("slow", 3)), -static_cast<int64_t>(wire::Reason::UNKNOWN_TAG));
  const auto other = std::make_shared<ScriptedStrategy>();
  other->next = 5'000;
  ASSERT_TRUE(issuing_.issuer.Set({"slow", other, {}}).ok());
  EXPECT_EQ(Ask(GetId("slow", 4)), 5'000);
}

TEST_P(SameCallAgainTest, BelongsToTheTagThatANameGetsInPlaceOfTheDefault) {
  const auto common = std::make_shared<ScriptedStrategy>();
  issuing_.issuer.SetDefault(TagBinding{"", common, {}});
  EXPECT_EQ(Ask(GetId("new", 1)), 1);
  const auto own = std::make_shared<ScriptedStrategy>();
  own->next = 5'000;
  ASSERT_TRUE(issuing_.issuer.Set({"new", own, {}}).ok());
  EXPECT_EQ(Ask(GetId("new", 2)), 5'000);
}

TEST_P(SameCallAgainTest, IsRefusedWhileTheServerGoesAway) {
  EXPECT_GT(Ask(GetId("order", 1)), 0);
  issuing_.issuer.Drain();
  EXPECT_EQ(Ask(GetId("order", 2)), -static_cast<int64_t>(wire::Reason::DRAINING));
}

TEST_P(SameCallAgainTest, WaitsWhenThereAreNoIds) {
  EXPECT_GT(Ask(GetId("slow", 1)), 0);
  issuing_.slow->waits = true;
  out_.Clear();
  EXPECT_EQ(Serve(GetId("slow", 2)).kind, Kind::kPark);
  EXPECT_TRUE(out_.empty());
  issuing_.slow->waits = false;
  const int asked = issuing_.slow->asked;
  EXPECT_EQ(Serve(GetId("slow", 2)).kind, Kind::kServed) << "the parked call, and no other";
  EXPECT_EQ(issuing_.slow->asked, asked + 1);
  EXPECT_EQ(door_.parked, nullptr);
}

TEST_P(SameCallAgainTest, IsCountedLikeTheFirst) {
  for (int i = 0; i < 10; ++i) Call(GetId("order", i)).recv_getId();
  EXPECT_EQ(issuing_.Sums().calls, 10u);
  EXPECT_EQ(issuing_.Sums().issued.at("order"), 10u);
}

TEST_P(SameCallAgainTest, IsNotFoundInATornOrDamagedFrame) {
  const std::string frame = GetId("order", 300);
  ASSERT_GT(Ask(frame), 0);
  for (size_t n = 1; n + 4 < frame.size(); ++n) {
    out_.Clear();
    EXPECT_EQ(Serve(ThriftCalls::WithLength(frame.substr(4, n))).kind, Kind::kClose) << n;
  }
  // Equal before the sequence id and behind it, and something more between them.
  const size_t behind = GetParam() == ThriftCoding::kBinary ? 21 : 8;
  for (const char* more : {"\x81", "\x01", "order", "\x81\x81\x81\x81\x81\x81"}) {
    std::string longer = frame.substr(4);
    longer.insert(behind - 4, more);
    out_.Clear();
    const uint64_t issued = issuing_.Sums().issued.at("order");
    Serve(ThriftCalls::WithLength(longer));
    EXPECT_EQ(issuing_.Sums().issued.at("order"), issued) << more;
  }
  EXPECT_GT(Ask(frame), 0);
}

class BinaryFrameTest : public ThriftProtocolTest {};
INSTANTIATE_TEST_SUITE_P(Binary, BinaryFrameTest, testing::Values(ThriftCoding::kBinary));

// A getId call whose argument struct is `fields`.
std::string CallWith(std::string_view fields) {
  return ThriftCalls::WithLength("\x80\1\0\1\0\0\0\5getId\0\0\0\1"s + std::string(fields));
}

TEST_P(BinaryFrameTest, ClosesAtClaimedSizesWithoutBelievingThem) {
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

TEST_P(BinaryFrameTest, ClosesAtContainersBeyondTheLimit) {
  // An unknown field with a list of 17 bytes.
  ExpectClosed(CallWith("\x0f\0\x63\3\0\0\0\x11"s + std::string(17, 'x') + "\0"s),
               CloseCause::kBadFrame);
  const std::string sixteen = CallWith("\x0f\0\x63\3\0\0\0\x10"s + std::string(16, 'x') + "\0"s);
  EXPECT_EQ(Serve(sixteen).kind, Kind::kServed);
}

TEST_P(BinaryFrameTest, ClosesAtNestingThatIsTooDeep) {
  std::string nested;
  for (int i = 0; i < 10'000; ++i) nested += "\x0c\0\x63"s;
  ExpectClosed(CallWith(nested), CloseCause::kBadFrame);
}

TEST_P(BinaryFrameTest, ClosesAtTheOldFormWithoutAVersion) {
  ExpectClosed(ThriftCalls::WithLength("\0\0\0\5getId\1\0\0\0\1\0"s), CloseCause::kBadFrame);
}

}  // namespace
}  // namespace firn::front
