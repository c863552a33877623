#pragma once

#include <cstddef>
#include <string_view>

namespace firn {

// The name of a lease: a label for operators, chosen by the program and not unique.
inline constexpr size_t kLeaseNameMax = 64;  // bytes
inline constexpr std::string_view kLeaseNameMarks = "-_.:/@";

// Accepts 1 to kLeaseNameMax letters, digits, or characters of kLeaseNameMarks.
bool IsLeaseName(std::string_view text);

}  // namespace firn
