#pragma once

#include <functional>

namespace firn {

// Queues a task for the control thread, which runs tasks in order. Returns at once; any thread. A
// program passes ControlLoop::Post; a simulation, which has only one thread, passes its own queue.
using PostToControl = std::function<void(std::function<void()> task)>;

}  // namespace firn
