#include "server/issue/segment/ordered.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/issue/segment/segment_rig.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Milliseconds kWindow{3'000};

// Asks the present owner, once the test says so.
class ScriptedLink final : public OwnerLink {
 public:
  void Take(const TagDefinition&, int64_t count, RangeSource::TakeDone done) override {
    takes.push_back({count, std::move(done)});
    if (prompt) Answer();
  }
  void Answer() {
    auto [count, done] = std::move(takes.front());
    takes.pop_front();
    done(owner == nullptr ? Result<Range>(Range{}) : owner->Take(count));
  }

  OwnedNumbers* owner = nullptr;
  bool prompt = true;
  std::deque<std::pair<int64_t, RangeSource::TakeDone>> takes;
};

// Servers that share a ledger, and who owns the tag.
class OrderedServers {
 protected:
  struct Server {
    OwnedTerm term;
    ScriptedLink link;
    std::shared_ptr<Ordered> tag;
  };

  OrderedServers() {
    definition_.name = "order";
    definition_.strategy = "segment";
    definition_.buffer = TagBuffer::kOwner;
    definition_.step = 10;
    definition_.step_max = 10;
    for (Server& server : servers_) {
      server.tag =
          *Ordered::Make(definition_, {ledger_, clock_, entropy_, {}}, server.term, server.link);
    }
  }

  void Own(Server& server) {
    server.term.Begin(++terms_, clock_.Boot() + kWindow);
    for (Server& each : servers_) each.link.owner = server.tag->own().get();
  }
  static void Leave(Server& server) {
    server.term.End();
    server.tag->own()->HandOver();
  }
  void Pass(Milliseconds time) {
    clock_.Advance(time);
    for (Server& server : servers_) server.tag->Tick(clock_.Boot());
  }
  void AnswerAll() {
    while (!ledger_.questions.empty()) ledger_.Answer();
  }
  // The number of one call, which may wait for the ledger.
  int64_t One(Server& server) {
    int64_t id = 0;
    if (server.tag->TryOne(Method::kEmbedded, &id)) return id;
    IssueCall call;
    call.Begin({.count = 1});
    for (int tries = 0; tries < 5; ++tries) {
      if (server.tag->Issue(call) == Verdict::kIssued) return call.runs()[0].first;
      AnswerAll();
      Pass(Milliseconds(10));
    }
    ADD_FAILURE() << call.refusal();
    return -1;
  }
  Verdict Ask(Server& server, Request request = {.count = 1}) {
    call_.Begin(request);
    return server.tag->Issue(call_);
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  SeededEntropy entropy_{1};
  ScriptedSource ledger_;
  TagDefinition definition_;
  uint64_t terms_ = 0;
  std::array<Server, 3> servers_;
  Server &first_ = servers_[0], &second_ = servers_[1];
  IssueCall call_;
};

class OrderedTest : public testing::Test, protected OrderedServers {};

TEST_F(OrderedTest, TheOwnerIssuesFromItsMemory) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  const int64_t fetched = ledger_.next;
  EXPECT_EQ(One(first_), 2);
  EXPECT_EQ(ledger_.next, fetched);
}

TEST_F(OrderedTest, NumbersRiseAcrossServers) {
  Own(first_);
  int64_t last = 0;
  for (size_t i = 0; i < 50; ++i) {
    const int64_t number = One(servers_[i % 3]);
    EXPECT_GT(number, last);
    last = number;
  }
}

TEST_F(OrderedTest, AnswersACallWithSeveralRuns) {
  Own(first_);
  for (Server* server : {&first_, &second_}) {
    IssueCall call;
    call.Begin({.count = 25});
    for (int i = 0; i < 10 && server->tag->Issue(call) != Verdict::kIssued; ++i) {
      AnswerAll();
      Pass(Milliseconds(10));
    }
    EXPECT_EQ(call.missing(), 0);
    EXPECT_EQ(call.runs().count(), 25);
  }
}

TEST_F(OrderedTest, IssuesNothingOnceTheWindowIsOver) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  clock_.Advance(kWindow);
  int64_t id = 0;
  EXPECT_FALSE(first_.tag->TryOne(Method::kEmbedded, &id));
  IdRun run;
  EXPECT_FALSE(first_.tag->TryRun(Method::kEmbedded, 2, &run));
  EXPECT_EQ(first_.tag->own()->Take(2).value(), Range{});
  EXPECT_EQ(first_.tag->status().wasted, 3) << "compared after the numbers were taken";
}

TEST_F(OrderedTest, ARangeOfAnEarlierTermIsNotUsed) {
  Own(first_);
  EXPECT_EQ(Ask(first_), Verdict::kWait);
  const auto late = std::move(ledger_.questions.front());
  ledger_.questions.clear();
  ledger_.next = 11;  // the range 1 to 10 has been reserved, and the answer is on its way
  Leave(first_);
  Own(second_);
  const int64_t other = One(second_);
  EXPECT_GT(other, 10);
  Leave(second_);
  Own(first_);
  late.done(Range{1, 11});
  EXPECT_GT(One(first_), other);
}

TEST_F(OrderedTest, RequestsNothingFromTheLedgerBetweenTerms) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  Leave(first_);
  first_.link.owner = nullptr;
  EXPECT_EQ(Ask(first_), Verdict::kWait);
  Pass(Milliseconds(100));
  EXPECT_THAT(ledger_.questions, IsEmpty());
}

TEST_F(OrderedTest, GivesTheTailBackAtTheEndOfATerm) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  AnswerAll();
  const int64_t end = ledger_.next;
  Leave(first_);
  EXPECT_THAT(ledger_.given_back, ElementsAre(Range{2, end}));
  Own(second_);
  EXPECT_EQ(One(second_), 2);
  Leave(second_);
  Own(first_);
  EXPECT_EQ(One(first_), 3);
}

TEST_F(OrderedTest, ATakeWaitsForTheNextOwner) {
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  Pass(Milliseconds(500));
  EXPECT_EQ(second_.tag->Issue(call_), Verdict::kWait);
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  Pass(Milliseconds(10));
  EXPECT_EQ(second_.tag->Issue(call_), Verdict::kIssued);
}

TEST_F(OrderedTest, ACallThatFindsNoOwnerIsToldSoIfItGivesUp) {
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  for (int i = 0; i < 100; ++i) {
    Pass(Milliseconds(10));
    EXPECT_EQ(second_.tag->Issue(call_), Verdict::kWait);
  }
  EXPECT_EQ(call_.waits_at_most(), IssueCall::kSeekPatience);
  EXPECT_EQ(call_.refusal().reason, Reason::kStoreDown);
  EXPECT_THAT(call_.refusal().message,
              testing::HasSubstr("owner of this tag's numbers does not answer"));
}

TEST_F(OrderedTest, ATakeServesOnlyCallsThatHadBegun) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  second_.link.prompt = false;
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  IssueCall later;
  later.Begin({.count = 1});
  EXPECT_EQ(second_.tag->Issue(later), Verdict::kWait);
  second_.link.Answer();
  EXPECT_EQ(second_.tag->Issue(call_), Verdict::kIssued);
  EXPECT_EQ(second_.tag->Issue(later), Verdict::kWait);
  second_.link.Answer();
  EXPECT_EQ(second_.tag->Issue(later), Verdict::kIssued);
  EXPECT_GT(later.runs()[0].first, call_.runs()[0].first);
}

TEST_F(OrderedTest, ACallForOneRunGetsAllOfItFromOneRange) {
  Own(first_);
  for (int i = 0; i < 7; ++i) One(first_);
  for (Server* server : {&first_, &second_}) {
    IssueCall call;
    call.Begin({.count = 6, .form = Form::kOneRun});
    for (int i = 0; i < 10 && server->tag->Issue(call) != Verdict::kIssued; ++i) {
      AnswerAll();
      Pass(Milliseconds(10));
    }
    ASSERT_EQ(call.missing(), 0);
    EXPECT_EQ(call.runs().size(), 1U);
  }
}

TEST_F(OrderedTest, SaysThatTheTagIsExhausted) {
  Own(first_);
  for (Server* server : {&first_, &second_}) {
    IssueCall call;
    call.Begin({.count = 1});
    Verdict verdict = server->tag->Issue(call);
    for (int i = 0; i < 5 && verdict == Verdict::kWait; ++i) {
      if (!ledger_.questions.empty()) ledger_.Fail(Exhausted("no numbers are left"));
      Pass(Milliseconds(10));
      verdict = server->tag->Issue(call);
    }
    EXPECT_EQ(call.refusal().reason, Reason::kExhausted) << call.refusal();
  }
}

TEST_F(OrderedTest, AnAbandonedTagIssuesNothingAndGivesNothingBack) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  first_.tag->Abandon();
  int64_t id = 0;
  EXPECT_FALSE(first_.tag->TryOne(Method::kEmbedded, &id));
  EXPECT_EQ(Ask(first_), Verdict::kRefused);
  EXPECT_THAT(ledger_.given_back, IsEmpty());
}

// Random histories: owners change, their windows end, answers are late or lost, and calls begin and
// end at any time.
class RandomOwners : OrderedServers {
 public:
  explicit RandomOwners(uint64_t seed) : random_(seed) {
    for (Server& server : servers_) server.link.prompt = false;
  }

  void Run() {
    for (int step = 0; step < 500 && !testing::Test::HasFailure(); ++step) Step();
  }
  int answered() const { return answered_; }

 private:
  struct Open {
    Server* server;
    std::unique_ptr<IssueCall> call;
    int64_t above;  // the largest number that had been answered when the call began
  };
  struct Late {
    Range range;
    RangeSource::TakeDone done;
  };

  size_t Below(size_t n) { return random_.Below(n); }
  bool Once(size_t in) { return Below(in) == 0; }

  void Step() {
    Server& server = servers_[Below(servers_.size())];
    switch (Below(9)) {
      case 0:
        return Once(5) ? ChangeOwner(server) : void();
      case 1:
        return Reserve();
      case 2:
        return Deliver();
      case 3:
        return server.link.takes.empty() ? void() : server.link.Answer();
      case 4:
        return Pass(Milliseconds(10 + Below(100)));
      case 5:
        return owner_ == nullptr ? void() : owner_->term.Extend(clock_.Boot() + kWindow / 10);
      case 6:
        open_.push_back({&server, std::make_unique<IssueCall>(), largest_});
        return open_.back().call->Begin({.count = static_cast<int64_t>(1 + Below(4))});
      case 7:
        return TakeOne(server);
      default:
        return open_.empty() ? void() : Continue(Below(open_.size()));
    }
  }

  void ChangeOwner(Server& server) {
    if (owner_ != nullptr) Leave(*owner_);
    owner_ = &server;
    Own(server);
  }
  // The ledger sets a range aside; the answer comes later.
  void Reserve() {
    if (ledger_.questions.empty()) return;
    std::swap(ledger_.questions.front(), ledger_.questions[Below(ledger_.questions.size())]);
    const int64_t size = ledger_.asked(), begin = std::exchange(ledger_.next, ledger_.next + size);
    late_.push_back({{begin, begin + size}, std::move(ledger_.questions.front().done)});
    ledger_.questions.pop_front();
  }
  void Deliver() {
    if (late_.empty()) return;
    std::swap(late_.back(), late_[Below(late_.size())]);
    const Late late = std::move(late_.back());
    late_.pop_back();
    late.done(Once(8) ? Result<Range>(Unknown("no answer")) : late.range);
  }
  void TakeOne(Server& server) {
    int64_t id = 0;
    if (server.tag->TryOne(Method::kEmbedded, &id)) Issued(id, id, largest_);
  }
  void Continue(size_t which) {
    Open& one = open_[which];
    const Verdict verdict = one.server->tag->Issue(*one.call);
    if (verdict == Verdict::kWait) return;
    const Runs& runs = one.call->runs();
    if (verdict == Verdict::kIssued) Issued(runs[0].first, runs.runs().back().last(), one.above);
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(which));
  }
  void Issued(int64_t least, int64_t most, int64_t above) {
    EXPECT_GT(least, above) << "a call that had begun later got a smaller number";
    largest_ = std::max(largest_, most);
    ++answered_;
  }

  SeededEntropy random_;
  Server* owner_ = nullptr;
  std::vector<Open> open_;
  std::vector<Late> late_;
  int64_t largest_ = 0;  // that was answered
  int answered_ = 0;
};

TEST(OrderedHistoriesTest, NumbersRiseInRealTime) {
  int answered = 0;
  for (uint64_t seed = TestSeed(); seed < TestSeed() + 300; ++seed) {
    SCOPED_TRACE(SeedText(seed));
    RandomOwners history(seed);
    history.Run();
    answered += history.answered();
    if (HasFailure()) return;
  }
  EXPECT_GT(answered, 3'000);
}

}  // namespace
}  // namespace firn
