#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/server/front/thrift_protocol_rig.h"

namespace firn::front {
namespace {

// A repeated call is recognised by its bytes. Its answer must equal that of a protocol that has not
// served the call before.
class SameCallAgainTest : public ThriftProtocolTest {
 protected:
  std::string GetId(const std::string& tag, int32_t sequence) {
    std::string frame = calls_.GetId(tag);
    // Generated clients write 0: four bytes after the name, or one before it.
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

  // Returns the answer, after comparing it with a new protocol's: the id, or the reason of the
  // refusal as a negative number.
  int64_t Ask(const std::string& frame) {
    out_.Clear();
    EXPECT_EQ(Serve(frame).kind, Kind::kServed);
    const std::string answer(out_.view());
    const int64_t got = Read(answer);

    ExpectLikeANewcomers(frame, answer);
    return got;
  }

  // A new protocol must give the same answer, with another id.
  void ExpectLikeANewcomers(const std::string& frame, const std::string& answer) {
    const int64_t got = Read(answer);
    const auto newcomer = MakeThriftProtocol(GetParam(), issuing_.backend, issuing_.counters);
    OutBuffer out;
    DoorCall door{.client = {}, .last = true};
    EXPECT_EQ(newcomer->Serve(frame, door, out).kind, Kind::kServed);
    const int64_t other = Read(std::string(out.view()));
    EXPECT_EQ(got < 0, other < 0);
    EXPECT_TRUE(got < 0 || got != other) << "the same id twice";
    EXPECT_EQ(WithoutId(answer), WithoutId(std::string(out.view())));
  }

 private:
  int64_t Read(const std::string& answer) {
    try {
      return calls_.Answer(answer).recv_getId();
    } catch (const wire::Refusal& refusal) {
      return -static_cast<int64_t>(refusal.reason);
    }
  }
  // The id is at the end of an answer; in compact coding it may have any length.
  std::string WithoutId(const std::string& answer) {
    return answer.substr(4, answer.find("getId") + (GetParam() == ThriftCoding::kBinary ? 8 : 3));
  }
};

INSTANTIATE_TEST_SUITE_P(Codings, SameCallAgainTest,
                         testing::Values(ThriftCoding::kBinary, ThriftCoding::kCompact),
                         [](const auto& coding) {
                           return coding.param == ThriftCoding::kBinary ? "Binary" : "Compact";
                         });

TEST_P(SameCallAgainTest, GetsItsOwnSequenceIdAndANewId) {
  for (const int32_t sequence : {0, 0, 1, 127, 128, 16'384, INT32_MAX, -1, INT32_MIN, 0}) {
    EXPECT_GT(Ask(GetId("order", sequence)), 0) << sequence;
    EXPECT_GT(Ask(GetId("slow", sequence)), 0) << sequence;
  }
}

TEST_P(SameCallAgainTest, GetsIdsOfTheTagThatItNames) {
  // More tags than are cached: some of equal length, all with the same beginning and end.
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

TEST_P(SameCallAgainTest, IsRefusedOnceTheTagIsRemovedAndServedOnceItIsBack) {
  EXPECT_GT(Ask(GetId("slow", 1)), 0);
  EXPECT_GT(Ask(GetId("slow", 2)), 0);
  issuing_.issuer.Remove("slow");
  EXPECT_EQ(Ask(GetId("slow", 3)), -static_cast<int64_t>(wire::Reason::UNKNOWN_TAG));
  const auto other = std::make_shared<ScriptedStrategy>();
  other->next = 5'000;
  ASSERT_TRUE(issuing_.issuer.Set({"slow", other, {}}).ok());
  EXPECT_EQ(Ask(GetId("slow", 4)), 5'000);
}

TEST_P(SameCallAgainTest, UsesATagDefinedLaterInsteadOfTheDefault) {
  const auto common = std::make_shared<ScriptedStrategy>();
  issuing_.issuer.SetDefault(TagBinding{"", common, {}});
  EXPECT_EQ(Ask(GetId("new", 1)), 1);
  const auto own = std::make_shared<ScriptedStrategy>();
  own->next = 5'000;
  ASSERT_TRUE(issuing_.issuer.Set({"new", own, {}}).ok());
  EXPECT_EQ(Ask(GetId("new", 2)), 5'000);
}

TEST_P(SameCallAgainTest, IsRefusedWhileTheServerDrains) {
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
  EXPECT_EQ(Serve(GetId("slow", 2)).kind, Kind::kServed) << "this must be the parked call";
  EXPECT_EQ(issuing_.slow->asked, asked + 1);
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
  // Equal before and after the sequence id, with additional bytes between them.
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

// Calls in one buffer are answered together; each answer must equal that of a single call.
class SameCallsTest : public SameCallAgainTest {
 protected:
  // Serves frame by frame.
  static std::vector<std::string> Cut(std::string_view bytes) {
    std::vector<std::string> frames;
    while (bytes.size() >= 4) {
      const auto byte = [&](size_t i) { return size_t{static_cast<uint8_t>(bytes[i])}; };
      const size_t whole = 4 + (byte(2) << 8 | byte(3));
      frames.emplace_back(bytes.substr(0, whole));
      bytes.remove_prefix(std::min(whole, bytes.size()));
    }
    return frames;
  }
  // Serves all of `in`, and returns how often the protocol was called.
  int ServeAll(std::string_view in) {
    int steps = 0;
    for (; !in.empty(); ++steps) {
      const ServeStep step = Serve(in);
      if (step.kind == Kind::kPark) {
        issuing_.clock.Advance(Milliseconds(1));
        continue;
      }
      EXPECT_EQ(step.kind, Kind::kServed);
      if (step.kind != Kind::kServed) break;
      EXPECT_LE(step.requests, door_.together);
      in.remove_prefix(step.bytes);
    }
    return steps;
  }
};

INSTANTIATE_TEST_SUITE_P(Codings, SameCallsTest,
                         testing::Values(ThriftCoding::kBinary, ThriftCoding::kCompact),
                         [](const auto& coding) {
                           return coding.param == ThriftCoding::kBinary ? "Binary" : "Compact";
                         });

TEST_P(SameCallsTest, GetTheSameAnswersTogetherAsOneByOne) {
  for (const size_t together : {1u, 2u, 7u, 64u}) {
    door_.together = together;
    out_.Clear();
    std::string in;
    std::vector<std::string> asked;
    for (int i = 0; i < 1'500; ++i) {
      // Sequence ids of one to five bytes; at times another tag, or a tag whose calls wait.
      const int32_t sequence = i % 5 == 0 ? -i : 1 << (i % 31);
      asked.push_back(GetId(i % 100 == 99 ? "slow" : "order", sequence));
      in += asked.back();
    }
    const int steps = ServeAll(in);
    const std::vector<std::string> answers = Cut(out_.view());
    ASSERT_EQ(answers.size(), asked.size());
    if (together == 64) {
      EXPECT_LT(steps, 100);
    }
    int64_t last = 0;
    for (size_t i = 0; i < asked.size(); ++i) {
      if (i % 500 == 0) issuing_.clock.Advance(Milliseconds(1));  // a tick has 4,096 ids
      ExpectLikeANewcomers(asked[i], answers[i]);
      if (i % 100 == 99) continue;
      const int64_t id = calls_.Answer(answers[i]).recv_getId();
      EXPECT_GT(id, last) << "call " << i << " of " << together << " together";
      last = id;
    }
  }
  EXPECT_EQ(issuing_.Sums().issued.at("slow"), 4 * 15u + 4 * 15u) << "with those of new protocols";
  EXPECT_EQ(issuing_.Sums().calls, 2 * 4 * 1'500u);
}

TEST_P(SameCallsTest, DoNotConsumeIncompleteOrOtherCalls) {
  door_.together = 64;
  const std::string one = GetId("order", 7);
  ASSERT_GT(Ask(one), 0);
  const std::string damaged = ThriftCalls::WithLength(one.substr(4, one.size() - 6));
  for (const std::string& behind : {one.substr(0, 3), one.substr(0, one.size() - 1), damaged}) {
    out_.Clear();
    const ServeStep step = Serve(one + one + behind);
    EXPECT_EQ(step.kind, Kind::kServed);
    EXPECT_EQ(step.requests, 2u);
    EXPECT_EQ(step.bytes, 2 * one.size());
    EXPECT_EQ(Cut(out_.view()).size(), 2u);
  }
}

TEST_P(SameCallsTest, StopWhereIdsAreExhausted) {
  door_.together = 64;
  const std::string one = GetId("order", 7);
  ASSERT_GT(Ask(one), 0);
  std::string in;
  for (int i = 0; i < 64; ++i) in += one;
  // The tick has 4,096 ids, of which a part is used.
  size_t served = 0;
  ServeStep step = Serve(in);
  for (; step.kind == Kind::kServed; step = Serve(in)) served += step.requests;
  EXPECT_EQ(step.kind, Kind::kPark);
  EXPECT_GT(served, 2'000u);
  EXPECT_NE(served % 64, 0u) << "some must be answered before the next waits";
  issuing_.issuer.Drain();
  out_.Clear();
  EXPECT_EQ(Serve(in).requests, 1u) << "the parked call is refused";
  EXPECT_THROW(calls_.Answer(out_.view()).recv_getId(), wire::Refusal);
}

}  // namespace
}  // namespace firn::front
