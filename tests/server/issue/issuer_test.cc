#include "server/issue/issuer.h"

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/issue/plugin_rig.h"
#include "tests/server/issue/snowflake/snowflake_rig.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

class IssuerTest : public testing::Test {
 protected:
  Verdict Ask(std::string_view tag, int64_t count = 1) {
    call_.Begin(*issuer_.Resolve(tag), {.tag = tag, .count = count});
    return issuer_.Issue(call_);
  }
  void Serve(std::string name, std::shared_ptr<Strategy> strategy) {
    ASSERT_EQ(issuer_.Set({std::move(name), std::move(strategy), {}}), Status());
  }

  // Returns the refusal of an unknown tag.
  Refusal AskUnknown(std::string_view tag) {
    call_.Begin({.tag = tag});
    EXPECT_EQ(issuer_.Issue(call_), Verdict::kRefused);
    return call_.refusal();
  }

  RecordingRejections rejections_;
  Issuer issuer_{rejections_};
  IssueCall call_;
  std::shared_ptr<CountingStrategy> counting_ = std::make_shared<CountingStrategy>();
};

TEST_F(IssuerTest, IssuesIdsOfTheTagsStrategy) {
  Serve("order", counting_);
  EXPECT_EQ(Ask("order", 5), Verdict::kIssued);
  EXPECT_EQ(call_.runs()[0], (IdRun{1, 5, 1}));
  int64_t id = 0;
  EXPECT_TRUE(issuer_.TryOne(*issuer_.Resolve("order"), Method::kThrift, &id));
  EXPECT_EQ(id, 6);
}

TEST_F(IssuerTest, RefusesACountOutOfBoundsAndDoesNotReduceIt) {
  Serve("order", counting_);
  for (const int64_t count : {int64_t{0}, int64_t{-1}, INT64_MIN, int64_t{10'001}, INT64_MAX}) {
    EXPECT_EQ(Ask("order", count), Verdict::kRefused) << count;
    EXPECT_EQ(call_.refusal().reason, Reason::kBadRequest);
  }
  EXPECT_EQ(counting_->next, 1);
  EXPECT_EQ(Ask("order", 1'000), Verdict::kIssued);
}

TEST_F(IssuerTest, SuggestsTagsSimilarToAnUnknownOne) {
  for (const char* name : {"order", "orders-eu", "user", "invoice"}) Serve(name, counting_);
  EXPECT_EQ(issuer_.Resolve("oder"), nullptr);
  const Refusal refusal = AskUnknown("oder");
  EXPECT_EQ(refusal.reason, Reason::kUnknownTag);
  EXPECT_THAT(refusal.message, HasSubstr("there is 'order'"));
  EXPECT_THAT(refusal.message, Not(HasSubstr("invoice")));
  EXPECT_THAT(rejections_.tags, ElementsAre("oder"));
}

TEST_F(IssuerTest, LimitsSuggestionsPerSecond) {
  VirtualClock clock{WallMs(1'735'689'600'000)};
  Issuer issuer(rejections_, clock);
  ASSERT_TRUE(issuer.Set({"order", counting_, {}}).ok());
  const auto suggested = [&](int asked) {
    int count = 0;
    for (int i = 0; i < asked; ++i) {
      call_.Begin({.tag = "oder"});
      EXPECT_EQ(issuer.Issue(call_), Verdict::kRefused);
      EXPECT_THAT(call_.refusal().message, HasSubstr("no tag 'oder'"));
      if (call_.refusal().message.find("there is 'order'") != std::string::npos) ++count;
    }
    return count;
  };
  EXPECT_EQ(suggested(1'000), 20) << "the first calls get a suggestion";
  clock.Advance(Milliseconds(1'000));
  EXPECT_EQ(suggested(1'000), 20) << "a quiet second does not permit a larger burst";
  int in_a_second = 0;
  for (int ms = 0; ms < 1'000; ++ms) {
    clock.Advance(Milliseconds(1));
    in_a_second += suggested(10);
  }
  EXPECT_EQ(in_a_second, 100);
}

TEST_F(IssuerTest, ShowsAnUnknownTagAsPrintableText) {
  const std::string tag = "order\n" + std::string(1'000, 'x');
  EXPECT_EQ(AskUnknown(tag).message, "no tag 'order\\x0a" + std::string(58, 'x') + "'...");
}

TEST_F(IssuerTest, TheDefaultServesAnyTag) {
  issuer_.SetDefault(TagBinding{"any", counting_, {}});
  EXPECT_EQ(Ask("never heard of"), Verdict::kIssued);
  EXPECT_EQ(Ask("nor of this"), Verdict::kIssued);
  Serve("order", std::make_shared<CountingStrategy>());
  EXPECT_EQ(Ask("order"), Verdict::kIssued);
  EXPECT_EQ(call_.runs()[0].first, 1) << "a defined tag has its own strategy";
}

TEST_F(IssuerTest, TagsAreUnknownAgainOnceTheDefaultIsRemoved) {
  issuer_.SetDefault(TagBinding{"any", counting_, {}});
  const Tag* any = issuer_.Resolve("never heard of");
  ASSERT_NE(any, nullptr);
  issuer_.SetDefault(std::nullopt);
  EXPECT_EQ(issuer_.Resolve("never heard of"), nullptr);
  call_.Begin(*any, {.tag = "never heard of"});
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kUnknownTag);
}

TEST_F(IssuerTest, AHandleStaysValidWhenTheTagIsChangedOrRemoved) {
  Serve("order", counting_);
  const Tag* order = issuer_.Resolve("order");
  counting_->next = 500;
  Serve("order", std::make_shared<CountingStrategy>());
  int64_t id = 0;
  EXPECT_TRUE(issuer_.TryOne(*order, Method::kThrift, &id));
  EXPECT_EQ(id, 1);
  issuer_.Remove("order");
  EXPECT_FALSE(issuer_.TryOne(*order, Method::kThrift, &id));
  EXPECT_EQ(Ask("order"), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kUnknownTag);
}

TEST_F(IssuerTest, EachIssuerResolvesToItsOwnTags) {
  // A new issuer at the same address as the previous one, and as similar as possible.
  for (int i = 0; i < 3; ++i) {
    std::optional<Issuer> other(std::in_place, rejections_);
    EXPECT_EQ(other->Resolve("order"), nullptr);
    ASSERT_TRUE(other->Set({"order", counting_, {}}).ok());
    ASSERT_TRUE(other->Set({"user", counting_, {}}).ok());
    Serve("order", counting_);
    for (int again = 0; again < 2; ++again) {
      EXPECT_NE(other->Resolve("order"), issuer_.Resolve("order"));
      EXPECT_EQ(other->Resolve("order"), other->Resolve("order"));
      EXPECT_EQ(other->Resolve("user")->name(), "user");
      EXPECT_EQ(other->Resolve("order")->name(), "order");
      EXPECT_EQ(other->Resolve("orde"), nullptr);
    }
  }
}

TEST_F(IssuerTest, RefusesEveryCallOnceItDrains) {
  Serve("order", counting_);
  counting_->waits = 2;
  IssueCall waiting(*issuer_.Resolve("order"), {.tag = "order"});
  EXPECT_EQ(issuer_.Issue(waiting), Verdict::kWait);
  issuer_.Drain();
  EXPECT_EQ(issuer_.Issue(waiting), Verdict::kRefused) << "a waiting call is refused, too";
  EXPECT_EQ(waiting.refusal().reason, Reason::kDraining);
  EXPECT_TRUE(waiting.refusal().another_server_may_help);
  EXPECT_EQ(Ask("order"), Verdict::kRefused);
  int64_t id = 0;
  EXPECT_FALSE(issuer_.TryOne(*issuer_.Resolve("order"), Method::kThrift, &id));
}

TEST_F(IssuerTest, CallsTheHandlerForEveryRefusal) {
  Serve("order", counting_);
  counting_->throws = true;
  Ask("order");
  Ask("order", 0);
  issuer_.Drain();
  Ask("order");
  EXPECT_THAT(rejections_.reasons,
              ElementsAre(Reason::kInternal, Reason::kBadRequest, Reason::kDraining));
}

TEST_F(IssuerTest, AnExceptionOfTheHandlerDoesNotChangeTheRefusal) {
  class Thrower final : public RejectionHandler {
   public:
    void OnRefusal(const Request&, const Refusal&) override { throw 1; }
  } thrower;
  Issuer issuer(thrower);
  ASSERT_EQ(issuer.Set({"order", counting_, {}}), Status());
  call_.Begin(*issuer.Resolve("order"), {.tag = "order", .count = 0});
  EXPECT_EQ(issuer.Issue(call_), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kBadRequest);
}

TEST_F(IssuerTest, ACallObjectCanBeReused) {
  Serve("order", counting_);
  for (int64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(Ask("order"), Verdict::kIssued);
    EXPECT_EQ(call_.runs().size(), 1u);
    EXPECT_EQ(call_.runs()[0], (IdRun{i, 1, 1}));
  }
}

TEST_F(IssuerTest, SnowflakeTagsShareOneSequence) {
  SnowflakeRig rig;
  rig.Hold();
  Serve("order", rig.strategy());
  Serve("user", rig.strategy());
  EXPECT_EQ(Ask("order"), Verdict::kIssued);
  const int64_t first = call_.runs()[0].first;
  EXPECT_EQ(Ask("user"), Verdict::kIssued);
  EXPECT_EQ(call_.runs()[0].first, first + 1);
}

// A call that is refused for `reason` around a snowflake strategy, and the cause of the refusal.
struct RefusedBy {
  const char* name;
  Reason reason;
  std::function<Verdict(Issuer&, IssueCall&, std::shared_ptr<Strategy>)> ask;
};

class RefusedAroundTheStrategy : public IssuerTest, public testing::WithParamInterface<RefusedBy> {
 public:
  static Verdict AskWith(Issuer& issuer, IssueCall& call, std::shared_ptr<Strategy> strategy,
                         std::function<std::optional<Refusal>(const Request&)> before,
                         int64_t count = 1) {
    static std::vector<std::string> log;
    const auto plugin = std::make_shared<ScriptedPlugin>("spy", 0, &log);
    plugin->before = std::move(before);
    EXPECT_EQ(issuer.Set({"refused", std::move(strategy), {plugin}}), Status());
    call.Begin(*issuer.Resolve("refused"), {.tag = "refused", .count = count});
    return issuer.Issue(call);
  }
};

TEST_P(RefusedAroundTheStrategy, LeavesNoTrace) {
  SnowflakeRig rig;
  rig.Hold();
  const uint64_t before = rig.One().sequence;
  EXPECT_EQ(GetParam().ask(issuer_, call_, rig.strategy()), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, GetParam().reason);
  EXPECT_EQ(rig.One().sequence, before + 1);
}

using Self = RefusedAroundTheStrategy;

INSTANTIATE_TEST_SUITE_P(
    EachReason, RefusedAroundTheStrategy,
    testing::Values(RefusedBy{"BadRequest", Reason::kBadRequest,
                              [](Issuer& issuer, IssueCall& call, auto strategy) {
                                return Self::AskWith(issuer, call, strategy, nullptr, -1);
                              }},
                    RefusedBy{"UnknownTag", Reason::kUnknownTag,
                              [](Issuer& issuer, IssueCall& call, auto strategy) {
                                EXPECT_EQ(issuer.Set({"gone", strategy, {}}), Status());
                                issuer.Remove("gone");
                                call.Begin(*issuer.Resolve("gone"), {.tag = "gone"});
                                return issuer.Issue(call);
                              }},
                    RefusedBy{"Rejected", Reason::kRejected,
                              [](Issuer& issuer, IssueCall& call, auto strategy) {
                                return Self::AskWith(issuer, call, strategy, [](const Request&) {
                                  return Refusal{Reason::kRejected, "enough"};
                                });
                              }},
                    RefusedBy{"Internal", Reason::kInternal,
                              [](Issuer& issuer, IssueCall& call, auto strategy) {
                                return Self::AskWith(
                                    issuer, call, strategy,
                                    [](const Request&) -> std::optional<Refusal> { throw 1; });
                              }},
                    RefusedBy{"Draining", Reason::kDraining,
                              [](Issuer& issuer, IssueCall& call, auto strategy) {
                                issuer.Drain();
                                return Self::AskWith(issuer, call, strategy, nullptr);
                              }}),
    [](const auto& param) { return std::string(param.param.name); });

TEST_F(IssuerTest, IssuesABatchAcrossTicksCompletelyOrNotAtAll) {
  SnowflakeRig rig;
  rig.Hold();
  Serve("order", rig.strategy());
  EXPECT_EQ(Ask("order", 10'000), Verdict::kWait);
  EXPECT_EQ(issuer_.GiveUp(call_).reason, Reason::kOverloaded);
  EXPECT_TRUE(call_.runs().empty()) << "ids that it had got are lost, not returned in part";
}

TEST_F(IssuerTest, ResolvesWhileTagsAreCreated) {
  Serve("order", counting_);
  std::atomic<bool> done{false};
  std::atomic<int> lost{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done) {
        const Tag* tag = issuer_.Resolve("order");
        if (tag == nullptr || tag->name() != "order" || tag->binding() == nullptr) ++lost;
        const Tag* other = issuer_.Resolve("tag 1999");
        if (other != nullptr && other->name() != "tag 1999") ++lost;
      }
    });
  }
  for (int i = 0; i < 2'000; ++i) {
    Serve("tag " + std::to_string(i), counting_);
    Serve("order", counting_);
  }
  done = true;
  threads.clear();
  EXPECT_EQ(lost, 0);
  for (int i = 0; i < 2'000; ++i) EXPECT_NE(issuer_.Resolve("tag " + std::to_string(i)), nullptr);
}

TEST_F(IssuerTest, RefusesATagWithoutNameOrStrategy) {
  EXPECT_EQ(issuer_.Set({"", counting_, {}}).code(), Code::kInvalid);
  EXPECT_EQ(issuer_.Set({"order", nullptr, {}}).code(), Code::kInvalid);
  EXPECT_EQ(issuer_.Resolve("order"), nullptr);
}

// A seeker with a scripted result, which counts its calls.
class ScriptedSeeker final : public TagSeeker {
 public:
  Found Seek(std::string_view, uint64_t& ticket, bool) override {
    tickets.push_back(ticket);
    if (ticket == 0) ticket = 7;
    return found;
  }
  Found found = Found::kLooking;
  std::vector<uint64_t> tickets;
};

class IssuerSeekTest : public IssuerTest {
 protected:
  IssuerSeekTest() {
    issuer_.SetSeeker(seeker_);
    call_.Begin({.tag = "order"});
  }
  ScriptedSeeker seeker_;
};

TEST_F(IssuerSeekTest, ServesAWaitingCallOnceItsTagIsCreated) {
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kWait);
  Serve("order", counting_);
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kIssued);
  EXPECT_EQ(call_.runs()[0].first, 1);
}

TEST_F(IssuerSeekTest, ATagIsUnknownOnlyAfterALookup) {
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kWait);
  seeker_.found = TagSeeker::Found::kNothing;
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kUnknownTag);
  EXPECT_THAT(seeker_.tickets, ElementsAre(0, 7));
}

TEST_F(IssuerSeekTest, AnUnansweredLookupMayBeRetriedOnAnotherServer) {
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kWait);
  issuer_.GiveUp(call_);
  EXPECT_TRUE(call_.refusal().another_server_may_help);
  EXPECT_EQ(call_.refusal().reason, Reason::kOverloaded) << "on which all clients retry here";
  EXPECT_THAT(call_.refusal().message, EndsWith("has not answered in time"));
  seeker_.found = TagSeeker::Found::kUnanswered;
  call_.Begin({.tag = "order"});
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kRefused);
  EXPECT_TRUE(call_.refusal().another_server_may_help);
  EXPECT_EQ(call_.refusal().reason, Reason::kStoreDown);
  EXPECT_THAT(call_.refusal().message, EndsWith("does not answer"));
}

TEST_F(IssuerSeekTest, AWaitingCallKeepsACopyOfTheName) {
  constexpr const char* kName = "a name that is too long for a string to keep in place";
  const auto begin = [&] {
    const std::string gone_soon = kName;
    call_.Begin({.tag = gone_soon});
    return issuer_.Issue(call_);
  };
  EXPECT_EQ(begin(), Verdict::kWait);
  IssueCall moved = std::move(call_);
  Serve(kName, counting_);
  EXPECT_EQ(issuer_.Issue(moved), Verdict::kIssued);
  counting_->waits = 1;
  EXPECT_EQ(begin(), Verdict::kWait) << "for a known tag";
  EXPECT_EQ(call_.request().tag, kName);
}

TEST_F(IssuerSeekTest, ACallKeepsTheTextFormOfItsBeginning) {
  const auto text = [](std::string_view form) {
    return std::make_shared<const TextTemplate>(*TextTemplate::Parse(form));
  };
  ASSERT_TRUE(issuer_.Set({"order", counting_, {}, text("old-{id}")}).ok());
  ASSERT_EQ(Ask("order"), Verdict::kIssued);
  ASSERT_TRUE(issuer_.Set({"order", counting_, {}, text("new-{id}")}).ok());
  std::string shown;
  call_.AppendText(call_.runs()[0].first, WallMs(), shown);
  EXPECT_EQ(shown, "old-1");
}

}  // namespace
}  // namespace firn
