#include "server/lease/leases.h"

#include <functional>
#include <utility>

#include "common/log/log.h"

namespace firn {
namespace {

constexpr Milliseconds kShowInterval{100};
constexpr int kPostedMax = 1'000;  // calls that the control thread has not begun

ClaimHooks LogAlarms() {
  ClaimHooks hooks;
  hooks.event = [](const ClaimEvent& event) {
    if (event.kind == ClaimEvent::Kind::kAlarm) LogError("lease_alarm") << event.text;
  };
  return hooks;
}

}  // namespace

Leases::Leases(LeaseOptions options, ControlLoop& loop, Entropy& entropy, const std::string& stem)
    : loop_(loop),
      file_(stem, [&loop](std::function<void()> task) { loop.Post(std::move(task)); }),
      table_(std::move(options), loop.coordinator(), entropy, file_, LogAlarms()),
      highest_bound_(table_.highest_bound()) {}

std::shared_ptr<const LeaseAnswer> Leases::Call(LeaseCall call) {
  auto answer = std::make_shared<LeaseAnswer>();
  if (posted_.fetch_add(1, std::memory_order_relaxed) >= kPostedMax) {
    posted_.fetch_sub(1, std::memory_order_relaxed);
    answer->Give({.verdict = LeaseVerdict::kLater,
                  .message = "too many requests for leases",
                  .retry_after = Milliseconds(1'000)});
    return answer;
  }
  loop_.Post([this, answer, call = std::move(call)] {
    posted_.fetch_sub(1, std::memory_order_relaxed);
    table_.Handle(call, [answer](LeaseReply reply) { answer->Give(std::move(reply)); });
  });
  return answer;
}

std::shared_ptr<const LeaseAnswer> NoLeases::Call(LeaseCall) {
  auto answer = std::make_shared<LeaseAnswer>();
  answer->Give({.verdict = LeaseVerdict::kRefused, .message = why_});
  return answer;
}

std::vector<LeaseShown> Leases::List() const {
  const std::scoped_lock lock(mutex_);
  return shown_;
}

LeaseCounts Leases::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

WallMs Leases::highest_bound() const {
  const std::scoped_lock lock(mutex_);
  return highest_bound_;
}

void Leases::Tick(const KeeperTime& now, LeaseTable::Server server) {
  table_.Tick(now, std::move(server));
  if (now.clocks.boot < show_at_) return;
  show_at_ = now.clocks.boot + kShowInterval;
  std::vector<LeaseShown> shown = table_.List();
  const std::scoped_lock lock(mutex_);
  std::swap(shown_, shown);
  counts_ = table_.counts();
  highest_bound_ = table_.highest_bound();
}

}  // namespace firn
