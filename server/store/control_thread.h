#pragma once

#include <functional>

namespace firn {

// Runs a task on the control thread, soon and in order. Returns at once; any thread. A program
// passes ControlLoop::Post; a simulation, which has only one thread, passes its own queue.
using PostToControl = std::function<void(std::function<void()> task)>;

}  // namespace firn
