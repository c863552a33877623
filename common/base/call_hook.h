#pragma once

#include <utility>

namespace firn {

// Calls a function of the program, if it is set. Swallows its exceptions, because the calling
// thread also works for others.
template <typename Hook, typename... Args>
void CallHook(const Hook& hook, Args&&... args) {
  if (!hook) return;
  try {
    hook(std::forward<Args>(args)...);
  } catch (...) {
  }
}

}  // namespace firn
