#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace firn {

// Returns at most `count_max` names of `known` that `name` may be a misspelling of, nearest first:
// one is a prefix of the other, or at most a third of the letters (at least two) must be inserted,
// omitted or changed.
//
// The work is bounded, because names come from clients: checks only the first kKnownMax names, and
// compares the letters only of names up to kLettersMax bytes.
inline constexpr size_t kKnownMax = 1'000;
inline constexpr size_t kLettersMax = 32;
std::vector<std::string> NearNames(std::string_view name, std::span<const std::string_view> known,
                                   size_t count_max);

// Returns "; did you mean 'order'?", or "" if no name of `known` is near.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> known);

}  // namespace firn
