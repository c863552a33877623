#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/id/rack_split.h"

namespace firn {

// Splits an id into its fields for people, and builds an id from fields. Pure functions: they do
// not affect a generator, and an id that they build was not issued.

struct Explanation {
  int64_t id = 0;
  std::string layout;  // text of the layout
  IdFields fields;
  WallMs time;      // start of the id's tick
  std::string utc;  // `time` in RFC 3339 form
  uint32_t worker = 0;
  uint32_t rack = 0;
};

// kInvalid when `id` cannot be of `layout`.
Result<Explanation> Explain(int64_t id, const Layout& layout, RackSplit split);

// The fields that a caller of Compose gives; the others are defaults. The numbers are unchecked.
// Give the time as a tick or a time, not both, and the machine as one number or as worker and rack,
// not both.
struct ComposeRequest {
  std::optional<int64_t> tick{};
  std::optional<WallMs> time{};
  std::optional<uint64_t> machine{};
  std::optional<uint64_t> worker{};
  std::optional<uint64_t> rack{};
  std::optional<uint64_t> sequence{};
  std::optional<uint64_t> version{};
  std::optional<uint64_t> type{};
  std::optional<uint64_t> method{};
};

// The inverse of Explain. Absent fields get the values in `defaults`; a const field absent from
// both gets the layout's value. kInvalid names the invalid fields.
Result<int64_t> Compose(const ComposeRequest& request, const Layout& layout, RackSplit split,
                        const IdFields& defaults);

// Converts a tick to its start, and a time to its tick. kInvalid outside the range of the layout's
// time field.
Result<WallMs> TimeOfTick(const Layout& layout, int64_t tick);
Result<Tick> TickOfTime(const Layout& layout, WallMs time);

}  // namespace firn
