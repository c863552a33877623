#include "tests/drill/callers/segment_caller.h"

#include <algorithm>
#include <utility>

#include "common/time/clock.h"
#include "tests/support/process.h"

namespace firn {
namespace {

constexpr Milliseconds kAnswerLimit{60'000};
constexpr Milliseconds kAfterTrouble{5};

}  // namespace

CallCounts& CallCounts::operator+=(const CallCounts& more) {
  answered += more.answered;
  refused += more.refused;
  broken += more.broken;
  longest = std::max(longest, more.longest);
  if (!more.last_trouble.empty()) last_trouble = more.last_trouble;
  return *this;
}

SegmentCaller::SegmentCaller(Options options, TakingsByTag takings)
    : options_(options),
      takings_(std::move(takings)),
      stub_(options.port, kAnswerLimit),
      thread_([this] { Run(); }) {}

SegmentCaller::~SegmentCaller() { Stop(); }

void SegmentCaller::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

std::map<std::string, CallCounts> SegmentCaller::TakeCounts() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(counts_, {});
}

void SegmentCaller::Run() {
  while (!stop_) {
    for (const auto& [tag, takings] : takings_) {
      if (stop_) return;
      Call(tag, *takings);
      if (options_.pause.count() > 0) SleepFor(options_.pause);
    }
  }
}

void SegmentCaller::Call(const std::string& tag, Takings& takings) {
  const int64_t before = takings.highest();
  const BootMs begin = TestNow();
  std::vector<wire::IdRun> runs;
  const StubCaller::End end =
      stub_.Call([&](wire::IdServiceClient& server) { server.getRuns(runs, tag, options_.count); });
  if (end == StubCaller::End::kAnswered) {
    const Milliseconds lasted = TestNow() - begin;
    for (const wire::IdRun& run : runs) takings.Add({run.first, run.count}, before);
    return Note(tag, [&](CallCounts& counts) {
      ++counts.answered;
      counts.longest = std::max(counts.longest, lasted);
    });
  }
  Note(tag, [&](CallCounts& counts) {
    ++(end == StubCaller::End::kRefused ? counts.refused : counts.broken);
    counts.last_trouble = stub_.trouble();
  });
  SleepFor(kAfterTrouble);
}

void SegmentCaller::Note(const std::string& tag, const std::function<void(CallCounts&)>& change) {
  const std::scoped_lock lock(mutex_);
  change(counts_[tag]);
}

}  // namespace firn
