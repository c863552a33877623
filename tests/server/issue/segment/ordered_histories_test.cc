#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/server/issue/segment/ordered_rig.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

// Random histories: owners change, their windows end, answers are late or lost, and calls begin and
// end at any time.
class RandomOwners : OrderedServers {
 public:
  explicit RandomOwners(uint64_t seed) : random_(seed) {
    for (Server& server : servers_) server.link.prompt = server.link.sends = false;
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
    switch (Below(10)) {
      case 0:
        return Once(5) ? ChangeOwner(server) : void();
      case 1:
        return Reserve();
      case 2:
        return Deliver();
      case 3:
        if (server.link.takes.empty()) return;
        return Once(2) ? server.link.Send() : server.link.Answer();
      case 4:
        return Pass(Milliseconds(10 + Below(100)));
      case 5:
        return owner_ == nullptr ? void() : owner_->term.Extend(clock_.Boot() + kWindow / 10);
      case 6:
        return Begin(server);
      case 7:
        return TakeOne(server);
      case 8:
        return open_.empty() || !Once(4) ? void() : GiveUp(Below(open_.size()));
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
  void Begin(Server& server) {
    open_.push_back({&server, std::make_unique<IssueCall>(), largest_});
    const Request request{.count = static_cast<int64_t>(1 + Below(4))};
    return Once(2) ? open_.back().call->Begin(request)
                   : open_.back().call->BeginJoint(name_, request);
  }
  void TakeOne(Server& server) {
    int64_t id = 0;
    if (server.tag->TryOne(Method::kEmbedded, &id)) Issued(id, id, largest_);
  }
  void Continue(size_t which) {
    Open& one = open_[which];
    const Verdict verdict = one.server->tag->Issue(*one.call);
    if (verdict == Verdict::kWait) return;
    if (verdict == Verdict::kRefused) return GiveUp(which);
    const Runs& runs = one.call->runs();
    Issued(runs[0].first, runs.runs().back().last(), one.above);
    if (one.call->missing() > 0) {  // the rest of a joint call
      return one.call->BeginJoint(name_, {.count = one.call->missing()});
    }
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(which));
  }
  void GiveUp(size_t which) {
    open_[which].server->tag->TakeBack(*open_[which].call);
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
