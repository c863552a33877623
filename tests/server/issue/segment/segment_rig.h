#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "server/issue/segment/range_source.h"
#include "server/issue/segment/ranged_strategy.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// A source that answers when the test says so, with consecutive ranges.
class ScriptedSource final : public RangeSource {
 public:
  struct Question {
    TagDefinition tag;
    int64_t size = 0;
    TakeDone done;
  };

  void Take(const TagDefinition& tag, int64_t size, TakeDone done) override {
    questions.push_back({tag, size, std::move(done)});
  }
  void GiveBack(const TagDefinition&, Range tail, GiveBackDone done) override {
    given_back.push_back(tail);
    if (tail.end != next) return done(Conflict("not the last"));
    next = tail.begin;
    done({});
  }
  bool permits_no_buffer() const override { return permits; }

  // Answers the oldest request.
  void Answer() {
    const int64_t size = questions.front().size;
    AnswerWith(Range{next, next + size});
    next += size;
  }
  void Fail(Status why) { AnswerWith(std::move(why)); }
  void AnswerWith(Result<Range> result) {
    const TakeDone done = std::move(questions.front().done);
    questions.pop_front();
    done(std::move(result));
  }
  int64_t asked() const { return questions.empty() ? 0 : questions.front().size; }

  std::deque<Question> questions;
  std::vector<Range> given_back;
  int64_t next = 1;
  bool permits = true;
};

// The fastest possible source: it answers before Take returns.
class PromptSource final : public RangeSource {
 public:
  explicit PromptSource(ScriptedSource& inner) : inner_(inner) {}

  void Take(const TagDefinition& tag, int64_t size, TakeDone done) override {
    inner_.Take(tag, size, std::move(done));
    if (then) std::jthread{then};
  }
  void GiveBack(const TagDefinition& tag, Range tail, GiveBackDone done) override {
    inner_.GiveBack(tag, tail, std::move(done));
  }
  bool permits_no_buffer() const override { return inner_.permits_no_buffer(); }

  std::function<void()> then{};

 private:
  ScriptedSource& inner_;
};

// A strategy of one tag on a virtual clock, and a caller that counts.
template <typename Kind>
class RangedRig : public testing::Test {
 protected:
  void Make(TagDefinition tag) {
    tag.name = "order";
    tag.strategy = "segment";
    definition_ = tag;
    auto made = Kind::Make(tag, {source_, clock_, entropy_, [this] { ++news_; }});
    ASSERT_TRUE(made.ok()) << made.status();
    strategy_ = *std::move(made);
  }

  // Makes one attempt of a call for `count` numbers.
  Verdict Ask(int64_t count = 1) {
    call_.Begin({.count = count});
    return AskAgain();
  }
  Verdict AskAgain() { return Attempt(call_); }
  // As an issuer.
  Verdict Attempt(IssueCall& call) {
    const Verdict verdict = strategy_->Issue(call);
    if (verdict == Verdict::kRefused) strategy_->TakeBack(call);
    return verdict;
  }

  // Returns a number that must be available at once.
  int64_t One() {
    int64_t id = 0;
    if (strategy_->TryOne(Method::kEmbedded, &id)) return id;
    EXPECT_EQ(Ask(), Verdict::kIssued) << call_.refusal();
    return call_.runs().empty() ? -1 : call_.runs()[0].first;
  }
  void Use(int64_t count) {
    for (int64_t i = 0; i < count; ++i) One();
  }

  void Pass(Milliseconds time) {
    clock_.Advance(time);
    strategy_->Tick(clock_.Boot());
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  SeededEntropy entropy_{1};
  ScriptedSource source_;
  int news_ = 0;
  TagDefinition definition_;
  std::shared_ptr<Kind> strategy_;
  IssueCall call_;
};

}  // namespace firn
