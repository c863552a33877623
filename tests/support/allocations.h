#pragma once

#include <cstdint>

namespace firn {

// How many allocations through `new` this program has made so far, on all threads. For programs
// that link firn_test_allocations, which replaces the global operators.
//
// In a file of its own: a compiler that sees that `delete` is free() warns about every `new` in the
// same file.
int64_t Allocations();

}  // namespace firn
