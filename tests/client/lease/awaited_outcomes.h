#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include <gtest/gtest.h>

#include "client/lease/lease_transport.h"
#include "tests/support/process.h"

namespace firn {

// Collects the outcomes of a lessee's requests, for tests that wait for each outcome.
class AwaitedOutcomes final : public LeaseOutcomes {
 public:
  void Post(uint64_t number, LeaseOutcome outcome) override {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(outcomes_.emplace(number, std::move(outcome)).second) << "a second outcome";
    posted_.notify_all();
  }
  LeaseOutcome Await(uint64_t number) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(posted_.wait_for(lock, kPatience, [&] { return outcomes_.contains(number); }));
    return outcomes_[number];
  }

 private:
  std::mutex mutex_;
  std::condition_variable posted_;
  std::map<uint64_t, LeaseOutcome> outcomes_;
};

}  // namespace firn
