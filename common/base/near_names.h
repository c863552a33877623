#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace firn {

// Those of `known` that somebody may have meant by `name`: one the beginning of the other, or at
// most a third of its letters (two at least) inserted, left out or changed. Nearest first, at most
// `count_max`.
//
// Bounded, because names come from clients: looks at the first kKnownMax only, and compares letters
// of names up to kLettersMax bytes only.
inline constexpr size_t kKnownMax = 1'000;
inline constexpr size_t kLettersMax = 32;
std::vector<std::string> NearNames(std::string_view name, std::span<const std::string_view> known,
                                   size_t count_max);

// "; did you mean 'order'?", or nothing when none of `known` is near.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> known);

}  // namespace firn
