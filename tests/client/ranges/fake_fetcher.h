#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "client/local_supply.h"

namespace firn {

// A fetcher whose answers the test provides. Thread-safe.
class FakeFetcher final : public RangeFetcher {
 public:
  struct Asked {
    std::string tag;
    int64_t count = 0;
    Done done;
  };

  void Fetch(const std::string& tag, int64_t count, Done done) override {
    const std::scoped_lock lock(mutex_);
    ++fetches_;
    waiting_.push_back({tag, count, std::move(done)});
  }

  int fetches() const {
    const std::scoped_lock lock(mutex_);
    return fetches_;
  }
  // Returns the count of the oldest unanswered request; 0 if there is none.
  int64_t waiting() const {
    const std::scoped_lock lock(mutex_);
    return waiting_.empty() ? 0 : waiting_.front().count;
  }

  // Answers the oldest request with the next numbers, in runs of at most `run`. Returns false if
  // there is none.
  bool Answer(int64_t run = INT64_MAX, int64_t stride = 1) {
    Asked asked;
    if (!Pop(asked)) return false;
    std::vector<IdRun> runs;
    for (int64_t left = asked.count; left > 0; left -= runs.back().count) {
      runs.push_back({next_, std::min(left, run), stride});
      next_ = runs.back().At(runs.back().count);
    }
    given_ += asked.count;
    asked.done(std::move(runs));
    return true;
  }
  bool Fail(const Status& status) {
    Asked asked;
    if (!Pop(asked)) return false;
    asked.done(status);
    return true;
  }

  // Returns the number of ids in answers so far. Only for the thread that answers.
  int64_t given() const { return given_; }

 private:
  bool Pop(Asked& asked) {
    const std::scoped_lock lock(mutex_);
    if (waiting_.empty()) return false;
    asked = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }

  mutable std::mutex mutex_;
  std::deque<Asked> waiting_;
  int fetches_ = 0;
  int64_t next_ = 1;   // used by the thread that answers
  int64_t given_ = 0;  // used by the thread that answers
};

}  // namespace firn
