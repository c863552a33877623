#include "server/lease/leases.h"

#include <functional>
#include <utility>

#include "common/log/log.h"
#include "common/time/clock.h"

namespace firn {
namespace {

constexpr Milliseconds kShowInterval{100};
constexpr Milliseconds kStopPoll{10};
constexpr int kPostedMax = 1'000;  // maximum number of calls that the table has not handled yet

LeaseReply Stopping() {
  return {.verdict = LeaseVerdict::kLater,
          .message = "this server is stopping; use another one",
          .retry_after = Milliseconds(1'000)};
}

ClaimHooks LogAlarms() {
  ClaimHooks hooks;
  hooks.event = [](const ClaimEvent& event) {
    if (event.kind == ClaimEvent::Kind::kAlarm) LogError("lease_alarm") << event.text;
  };
  return hooks;
}

}  // namespace

Leases::Core::Core(const LeaseTableOptions& options, ControlLoop& loop, Entropy& entropy,
                   const std::string& stem)
    : file(stem, [&loop](std::function<void()> task) { loop.Post(std::move(task)); }),
      table(options, loop.coordinator(), entropy, file, LogAlarms()),
      shares(loop.coordinator(), options.split, options.claim.rack) {}

Leases::Core::~Core() {
  for (const auto& [call, answer] : calls) answer->Give(Stopping());
}

Leases::Leases(const LeaseTableOptions& options, ControlLoop& loop, Entropy& entropy,
               const std::string& stem)
    : loop_(loop),
      core_(std::make_shared<Core>(options, loop, entropy, stem)),
      highest_bound_(core_->table.highest_bound()) {}

std::shared_ptr<const LeaseAnswer> Leases::Call(LeaseCall call) {
  auto answer = std::make_shared<LeaseAnswer>();
  if (core_->posted.fetch_add(1, std::memory_order_relaxed) >= kPostedMax) {
    core_->posted.fetch_sub(1, std::memory_order_relaxed);
    answer->Give({.verdict = LeaseVerdict::kLater,
                  .message = "too many requests for leases are waiting; repeat this one",
                  .retry_after = Milliseconds(1'000)});
    return answer;
  }
  loop_.Post([weak = std::weak_ptr<Core>(core_), answer, call = std::move(call)] {
    const std::shared_ptr<Core> core = weak.lock();
    if (core == nullptr) return answer->Give(Stopping());
    core->calls.emplace_back(std::move(call), answer);
  });
  return answer;
}

std::shared_ptr<const LeaseAnswer> NoLeases::Call(LeaseCall) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  auto answer = std::make_shared<LeaseAnswer>();
  answer->Give({.verdict = LeaseVerdict::kRefused, .message = why_});
  return answer;
}

LeaseCounts NoLeases::counts() const {
  LeaseCounts counts;
  counts.refused[static_cast<size_t>(LeaseVerdict::kRefused)] =
      refused_.load(std::memory_order_relaxed);
  return counts;
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

void Leases::HandleCalls() {
  const auto calls = std::exchange(core_->calls, {});
  core_->posted.fetch_sub(static_cast<int>(calls.size()), std::memory_order_relaxed);
  for (const auto& [call, answer] : calls) {
    if (const auto* ask = std::get_if<LeaseAsk>(&call)) core_->shares.NoteRequest(ask->rack);
    core_->table.Handle(call,
                        [answer = answer](LeaseReply reply) { answer->Give(std::move(reply)); });
  }
}

void Leases::StopWithin(Milliseconds time) {
  const Clock& clock = SystemClock();
  const BootMs give_up = clock.Boot() + time;
  bool stopped = false;
  loop_.Run([&] { core_->table.Stop(give_up); });
  while (!stopped && clock.Boot() < give_up) {
    SleepFor(kStopPoll);
    if (!loop_.Run([&] { stopped = core_->table.stopped(); })) return;
  }
}

void Leases::Tick(const KeeperTime& now, LeaseTable::Server server) {
  LeaseTable& table = core_->table;
  if (!core_->calls.empty()) {
    table.Tick(now, server);
    HandleCalls();
  }
  table.Tick(now, std::move(server));
  core_->shares.Tick(now.clocks);
  if (now.clocks.boot < show_at_) return;
  show_at_ = now.clocks.boot + kShowInterval;
  std::vector<LeaseShown> shown = table.List();
  const std::scoped_lock lock(mutex_);
  std::swap(shown_, shown);
  counts_ = table.counts();
  counts_.rooms = core_->shares.rooms();
  highest_bound_ = table.highest_bound();
}

}  // namespace firn
