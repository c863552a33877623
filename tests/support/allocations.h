#pragma once

#include <cstdint>

namespace firn {

// How often this program has asked the heap for memory through `new` so far, on all threads. For
// programs that link firn_test_allocations, which replaces the global operators.
//
// In a file of their own: where a compiler sees that `delete` is free(), it takes every `new`
// beside it for a mistake.
int64_t Allocations();

}  // namespace firn
