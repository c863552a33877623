#pragma once

#include <chrono>
#include <optional>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/tag/tag_definition.h"
#include "server/issue/range.h"

namespace firn {

// A clock further ahead of a tag's last number is assumed to be wrong: skipped periods never
// return.
inline constexpr std::chrono::days kPeriodLeapMax{400};

// Returns the range that follows a dated tag's ledger, of at most `size` numbers, when the
// registry's clock shows `now`. It belongs to one period: that of the tag's last number or that of
// the current date in the tag's zone, whichever is later. So whatever clock and zone do, no number
// is issued twice, and no period returns after a later one.
//
// The range has at most max(step, 1 % of the period's remaining numbers) numbers. kExhausted: the
// period is used up; kInvalid: the tag's start lies in a future period, the leap is too far, or
// ledger and zone contradict each other.
//
// `local`: the local clock's time, if it disagrees with the registry's. Then a period that is more
// than one ahead of both the tag's last number and the local date gets kUnavailable: a period once
// reached stays, so a clock that is wrong for a moment would date numbers wrongly for good.
Result<Range> PickDated(const TagDefinition& tag, int64_t size, WallMs now,
                        std::optional<WallMs> local = std::nullopt);

}  // namespace firn
