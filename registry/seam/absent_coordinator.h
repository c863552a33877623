#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "registry/seam/coordinator.h"

namespace firn {

// The coordinator of a server without a registry: there is never a session, and every request is
// answered kUnavailable. So code on the control thread needs no special case.
class AbsentCoordinator final : public Coordinator {
 public:
  void Read(const std::string&, ReadDone done, Changed = {}) override { Refuse(std::move(done)); }
  void List(const std::string&, ListDone done, Changed = {}) override { Refuse(std::move(done)); }
  void Sync(const std::string&, SyncDone done) override { Refuse(std::move(done)); }
  void PrepareRoot(SyncDone done) override { Refuse(std::move(done)); }
  void Multi(std::vector<Write>, WriteDone done) override {
    answers_.push_back(
        [done = std::move(done)] { done({.status = None(), .failed = -1, .stats = {}}); });
  }
  void OnSession(std::function<void(SessionEvent)>) override {}
  int64_t session() const override { return 0; }

  int Dispatch(Milliseconds wait) override {
    const auto answers = std::exchange(answers_, {});
    for (const auto& answer : answers) answer();
    if (answers.empty()) {
      std::unique_lock lock(mutex_);
      if (wait.count() > 0) woken_.wait_for(lock, wait, [this] { return wake_; });
      wake_ = false;
    }
    return static_cast<int>(answers.size());
  }

  void Wake() override {
    const std::scoped_lock lock(mutex_);
    wake_ = true;
    woken_.notify_one();
  }

 private:
  static Status None() { return Unavailable("there is no registry"); }

  template <typename Done>
  void Refuse(Done done) {
    answers_.push_back([done = std::move(done)] { done(None()); });
  }

  std::vector<std::function<void()>> answers_;  // of the control thread, as all verbs but Wake
  std::mutex mutex_;                            // guards the members below
  std::condition_variable woken_;
  bool wake_ = false;
};

}  // namespace firn
