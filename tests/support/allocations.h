#pragma once

#include <cstddef>
#include <cstdint>

namespace firn {

// How many allocations through `new` this program has made so far, on all threads. For programs
// that link firn_test_allocations, which replaces the global operators.
//
// In a file of its own: a compiler that sees that `delete` is free() warns about every `new` in the
// same file.
int64_t Allocations();

// Lets each such allocation of this many bytes or more fail with std::bad_alloc.
void FailAllocationsFrom(size_t bytes);

}  // namespace firn
