#pragma once

#include <memory>
#include <utility>

namespace firn {

// Ties callbacks to the object that made the request: a bound function does nothing after the
// object, and with it this member, is destroyed. Single-threaded, like all of the control thread.
class CallbackGuard {
 public:
  CallbackGuard() = default;
  CallbackGuard(const CallbackGuard&) = delete;
  CallbackGuard& operator=(const CallbackGuard&) = delete;

  template <typename Function>
  auto Bind(Function function) const {
    return [alive = std::weak_ptr<const char>(token_),
            function = std::move(function)](auto&&... arguments) mutable {
      if (!alive.expired()) function(std::forward<decltype(arguments)>(arguments)...);
    };
  }

 private:
  std::shared_ptr<const char> token_ = std::make_shared<const char>();
};

}  // namespace firn
