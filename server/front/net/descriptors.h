#pragma once

namespace firn::front {

// What is left of the descriptors that this process may have. Thread-safe.

// Whether this process can open `wanted` more. `open` is any descriptor that is open. Takes and
// returns them one by one, so that other threads find all but one at any time.
bool CanOpen(int open, int wanted);

// Whether `spare` are left after `accepted` was opened. Costs next to nothing as long as no
// accepted descriptor has come near the limit: the kernel gives the lowest number that is free.
//
// Sharp edge: one low number says nothing. A closed connection returns a low one while all higher
// ones are in use.
bool LeavesSpare(int accepted, int spare);

}  // namespace firn::front
