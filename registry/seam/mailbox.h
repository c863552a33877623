#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace firn {

// Where a state machine's answers wait until its next Tick, so that everything it does is done with
// a fresh reading of the clocks and in one place. Answers to a mailbox that is gone are dropped:
// whoever gives up a conversation just destroys it.
//
// Owned by the control thread.
class Mailbox {
 public:
  Mailbox() : letters_(std::make_shared<Letters>()) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // A callback for one request. Its answer is kept; `handle` gets it in the next Open.
  template <typename Answer, typename Handle>
  std::function<void(Answer)> Expect(Handle handle) {
    return [letters = std::weak_ptr<Letters>(letters_), handle = std::move(handle)](Answer answer) {
      const auto open = letters.lock();
      if (open == nullptr) return;
      open->push_back(
          [handle, answer = std::move(answer)]() mutable { handle(std::move(answer)); });
    };
  }

  // Handles what has arrived; what arrives meanwhile waits for the next time.
  void Open() {
    if (letters_->empty()) return;
    Letters arrived;
    arrived.swap(*letters_);
    for (auto& letter : arrived) letter();
  }

 private:
  using Letters = std::vector<std::function<void()>>;
  std::shared_ptr<Letters> letters_;
};

}  // namespace firn
