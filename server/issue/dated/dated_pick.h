#pragma once

#include <chrono>
#include <optional>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/tag/tag_definition.h"
#include "server/issue/range.h"

namespace firn {

// A clock that is further ahead of a tag's last number is assumed to be wrong, because skipped
// periods cannot be used later.
inline constexpr std::chrono::days kPeriodLeapMax{400};

// Returns the range that follows a dated tag's ledger, of at most `size` numbers, when the
// registry's clock shows `now`. It belongs to one period: that of the tag's last number, or that of
// the current date in the tag's zone if that is later. So even if the clock or the zone changes, no
// number is issued twice, and no period follows a later one.
//
// The range has at most max(step, 1 % of the period's remaining numbers) numbers. kExhausted: the
// period is used up; kInvalid: the tag's start is in a future period, the clock is more than
// kPeriodLeapMax ahead of the last number, or the ledger is not at a date and a count.
//
// `local`: the local clock's time, if it disagrees with the registry's. Then kUnavailable if the
// registry's period is more than one ahead of both the tag's last number and the local date.
// Periods never go back, so a clock that is wrong for a moment would date all later numbers
// wrongly.
Result<Range> PickDated(const TagDefinition& tag, int64_t size, WallMs now,
                        std::optional<WallMs> local = std::nullopt);

}  // namespace firn
