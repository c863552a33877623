#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace firn {

// Those of `known` that somebody may have meant by `name`: at most a third of its letters (two at
// least) inserted, left out or changed, or one the beginning of the other. Nearest first, at most
// `count_max`. Names longer than 128 bytes are near to nothing.
std::vector<std::string> NearNames(std::string_view name, std::span<const std::string_view> known,
                                   size_t count_max);

}  // namespace firn
