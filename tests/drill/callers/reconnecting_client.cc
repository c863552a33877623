#include "tests/drill/callers/reconnecting_client.h"

#include <algorithm>
#include <utility>

#include "common/time/clock.h"
#include "tests/support/process.h"

namespace firn {
namespace {

constexpr Milliseconds kBetweenCalls{1};
constexpr size_t kFailuresMax = 10;

}  // namespace

ReconnectingClient::ReconnectingClient(std::vector<int> ports, size_t first)
    : ports_(std::move(ports)),
      at_(first % ports_.size()),
      stub_(ports_[at_]),
      thread_([this] { Run(); }) {}

ReconnectingClient::~ReconnectingClient() { Stop(); }

void ReconnectingClient::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void ReconnectingClient::Run() {
  while (!stop_) {
    const BootMs begin = TestNow();
    if (AskAny(begin + kCallPatience)) {
      ++counts_.calls;
    } else {
      ++counts_.failed;
      if (failures_.size() < kFailuresMax) failures_.push_back(stub_.trouble());
    }
    counts_.longest_call = std::max(counts_.longest_call, TestNow() - begin);
    calls_ = counts_.calls;
    SleepFor(kBetweenCalls);
  }
}

bool ReconnectingClient::AskAny(BootMs give_up) {
  while (true) {
    int64_t id = 0;
    switch (stub_.Call([&id](wire::IdServiceClient& server) { id = server.getId("default"); })) {
      case StubCaller::End::kAnswered:
        runs_.push_back({TestNow(), {.first = id, .count = 1, .stride = 1}});
        return true;
      case StubCaller::End::kRefused:
        ++counts_.refused;
        break;
      case StubCaller::End::kLost:
        ++counts_.lost;
        break;
      case StubCaller::End::kUnreachable:
        ++counts_.unreachable;
        break;
    }
    if (TestNow() >= give_up) return false;
    SleepFor(kBetweenCalls);
    at_ = (at_ + 1) % ports_.size();
    stub_.GoTo(ports_[at_]);
  }
}

}  // namespace firn
