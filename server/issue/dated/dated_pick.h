#pragma once

#include <chrono>
#include <optional>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/tag/tag_definition.h"
#include "server/issue/range.h"

namespace firn {

// A clock that leads a tag's last number by more is taken for a mistake: periods that are skipped
// never come back.
inline constexpr std::chrono::days kPeriodLeapMax{400};

// The range that follows a dated tag's ledger, of at most `size` numbers, when the registry's clock
// shows `now`. It is of one period: the later one of that of the tag's last number and of the
// zone's date. So whatever clock and zone do, no number comes again, and no period after a later
// one.
//
// It has at most max(step, a hundredth of what is left of the period) numbers. kExhausted: the
// period is used up; kInvalid: its start lies in a period that has not come, or the leap is too
// far, or ledger and zone make no sense.
//
// `local`: what the local clock shows, where it disagrees with the registry's. Then kUnavailable
// for a period more than one ahead of the tag's last number and of the local date: a period that
// was reached stays, so that a clock that is wrong for a moment would date numbers for ever.
Result<Range> PickDated(const TagDefinition& tag, int64_t size, WallMs now,
                        std::optional<WallMs> local = std::nullopt);

}  // namespace firn
