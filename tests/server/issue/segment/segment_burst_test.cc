// A hundred times the usual rate with a small step: the waiting times of calls depend only on the
// source's answering time.

#include <algorithm>
#include <list>
#include <optional>

#include "server/issue/segment/segment.h"
#include "tests/server/issue/segment/segment_rig.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

// Callers that arrive at a steady rate and retry in order of arrival when a range arrives, and a
// source with a delay. In steps of a millisecond.
class SegmentBurstTest : public RangedRig<Segment> {
 protected:
  static constexpr int64_t kUsualPerSecond = 100;  // numbers
  static constexpr int64_t kBurst = 100;           // multiple of the usual rate

  // A hold time of 0 keeps the step at ten, so that only waiting calls make fetches larger.
  void MakeWithStepOfTen(int64_t hold_minutes) {
    source_.questions.clear();
    asked_.reset();
    TagDefinition tag;
    tag.step = 10;
    tag.hold_minutes = hold_minutes;
    Make(std::move(tag));
  }

  // Adds `per_second` numbers a second, `count` in each call, during `lasts`. Returns the longest
  // wait.
  Milliseconds Load(int64_t per_second, int64_t count, Milliseconds lasts) {
    longest_ = Milliseconds(0);
    int64_t due = 0;  // thousandths of a number
    for (Milliseconds passed{0}; passed < lasts; ++passed) {
      PassAMillisecond();
      for (due += per_second; due >= count * 1000; due -= count * 1000) Arrive(count);
    }
    return longest_;
  }
  void AwaitAll() {
    for (int i = 0; i < 10'000 && !parked_.empty(); ++i) PassAMillisecond();
    EXPECT_TRUE(parked_.empty());
  }

  Milliseconds answer_takes_{1};

 private:
  struct Caller {
    IssueCall call;
    BootMs came;
  };

  void PassAMillisecond() {
    Pass(Milliseconds(1));
    NoteQuestion();
    if (!asked_ || clock_.Boot() < *asked_ + answer_takes_) return;
    asked_.reset();
    source_.Answer();
    for (auto caller = parked_.begin(); caller != parked_.end();) {
      caller = Waits(*caller) ? std::next(caller) : parked_.erase(caller);
    }
  }
  void Arrive(int64_t count) {
    Caller caller;
    caller.came = clock_.Boot();
    caller.call.Begin({.count = count});
    if (!Waits(caller)) return;
    // Several IO threads retry their callers in no particular order.
    auto before = parked_.begin();
    std::advance(before, shuffled_ ? dice_.Below(parked_.size() + 1) : parked_.size());
    parked_.insert(before, std::move(caller));
  }
  bool Waits(Caller& caller) {
    const Verdict verdict = strategy_->Issue(caller.call);
    NoteQuestion();
    EXPECT_NE(verdict, Verdict::kRefused) << caller.call.refusal();
    longest_ = std::max<Milliseconds>(longest_, clock_.Boot() - caller.came);
    return verdict == Verdict::kWait;
  }
  void NoteQuestion() {
    if (!asked_ && !source_.questions.empty()) asked_ = clock_.Boot();
  }

 protected:
  SeededEntropy dice_{TestSeed()};
  bool shuffled_ = false;

 private:
  std::list<Caller> parked_;
  std::optional<BootMs> asked_;
  Milliseconds longest_{0};
};

// A call waits for the rest of the fetch in progress, and for the next one, which is as large as
// all waiting calls. So no call is refused whose timeout (--issue_wait_ms) is twice the answer's
// delay.
TEST_F(SegmentBurstTest, ACallWaitsForAtMostTwoAnswers) {
  Milliseconds any{0};
  for (const int64_t hold_minutes : {0, 15}) {
    for (const int64_t takes : {1, 3, 10, 24}) {
      for (const int64_t count : {1, 7, 10, 250}) {
        MakeWithStepOfTen(hold_minutes);
        answer_takes_ = Milliseconds(takes);
        Load(kUsualPerSecond, 1, Milliseconds(500));
        const Milliseconds longest = Load(kUsualPerSecond * kBurst, count, Milliseconds(200));
        EXPECT_LE(longest, 2 * answer_takes_ + Milliseconds(1))
            << takes << " ms, " << count << ", hold time " << hold_minutes;
        any = std::max(any, longest);
        AwaitAll();
      }
    }
  }
  EXPECT_GT(any, Milliseconds(10)) << "no call had to wait";
}

TEST_F(SegmentBurstTest, RefusesNoCallInAnyOrderWhileTheStoreAnswers) {
  SCOPED_TRACE(SeedText(TestSeed()));
  shuffled_ = true;
  for (const int64_t takes : {1, 10, 24}) {
    MakeWithStepOfTen(15);
    answer_takes_ = Milliseconds(takes);
    Load(kUsualPerSecond, 1, Milliseconds(500));
    const Milliseconds longest = Load(kUsualPerSecond * kBurst, 7, Milliseconds(500));
    EXPECT_LE(longest, 2 * answer_takes_ + Milliseconds(1)) << takes << " ms";
    AwaitAll();
  }
}

using SegmentPromptTest = RangedRig<Segment>;

// Each range is followed by the next at once, because another caller passes the prefetch mark.
TEST_F(SegmentPromptTest, AnEndlessCallDiscardsNoRange) {
  TagDefinition tag{.name = "order", .strategy = "segment"};
  tag.step = tag.step_max = 10;
  definition_ = tag;
  PromptSource prompt(source_);
  strategy_ = *Segment::Make(tag, {prompt, clock_, entropy_});
  int64_t others = 0;
  bool nested = false;
  prompt.then = [&] {
    source_.Answer();
    if (std::exchange(nested, true)) return;
    for (int64_t i = 0, id = 0; i < 2; ++i) others += strategy_->TryOne(Method::kEmbedded, &id);
    nested = false;
  };
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(i == 0 ? Ask(1'000'000) : AskAgain(), Verdict::kWait);
    const SegmentStatus status = strategy_->status();
    EXPECT_EQ(call_.runs().count() + others + status.supply + status.wasted, source_.next - 1);
  }
  EXPECT_GT(call_.runs().count(), 1'000);
}

}  // namespace
}  // namespace firn
