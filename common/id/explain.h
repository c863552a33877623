#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/id/rack_split.h"

namespace firn {

// An id taken apart for a person, and put together from what a person gives. Pure functions: they
// move no generator, and an id that they make has been issued to nobody.

struct Explanation {
  int64_t id = 0;
  std::string layout;  // the text of the layout that was used
  IdFields fields;
  WallMs time;      // the beginning of the id's tick
  std::string utc;  // the same as RFC 3339
  uint32_t worker = 0;
  uint32_t rack = 0;
};

// kInvalid when `id` cannot be of `layout`.
Result<Explanation> Explain(int64_t id, const Layout& layout, RackSplit split);

// What a caller of Compose has given; the rest is taken from the defaults. Numbers are as they came
// in, not yet checked. The time is a tick or a moment, not both; the machine is one number or
// worker and rack, not both.
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

// The inverse of Explain. `defaults` are the issuing server's own values, which absent fields take;
// a const field absent from both takes the layout's. kInvalid names the fields at fault.
Result<int64_t> Compose(const ComposeRequest& request, const Layout& layout, RackSplit split,
                        const IdFields& defaults);

// The beginning of a tick and the tick of a moment. kInvalid outside what the layout's time field
// can hold.
Result<WallMs> TimeOfTick(const Layout& layout, int64_t tick);
Result<Tick> TickOfTime(const Layout& layout, WallMs time);

}  // namespace firn
