#pragma once

#include <utility>

namespace firn {

// Calls a function of the program, if it has given one. An exception ends here, because the thread
// also works for others.
template <typename Hook, typename... Args>
void CallHook(const Hook& hook, Args&&... args) {
  if (!hook) return;
  try {
    hook(std::forward<Args>(args)...);
  } catch (...) {
  }
}

}  // namespace firn
