#pragma once

#include "common/layout.h"
#include "common/rack_split.h"
#include "common/status.h"

namespace firn {

// The layout and the split of its machine bits that --layout and --rack_bits name.
struct LayoutChoice {
  Layout layout;
  RackSplit split;
};
Result<LayoutChoice> ChosenLayout();

}  // namespace firn
