#pragma once

namespace firn::front {

// Checks for free file descriptors of this process. Thread-safe.

// Whether this process can open `wanted` more. `open` is any open descriptor. Opens and closes them
// one by one, so that other threads can use all but one of them meanwhile.
bool CanOpen(int open, int wanted);

// Whether `spare` descriptors are free after `accepted` was opened. Costs almost nothing while no
// accepted descriptor has come near the limit: the kernel assigns the lowest free number.
//
// Sharp edge: a low number proves nothing, as a closed connection may have freed it while all
// higher ones are in use. So the highest number so far counts.
bool LeavesSpare(int accepted, int spare);

}  // namespace firn::front
