#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/id/layout.h"
#include "common/tag/tag_definition.h"
#include "common/time/clock.h"

namespace firn {

// Returns the whole days from `now` until the layout's time field overflows and every call is
// refused with EXHAUSTED; 0 or less after that. For a gauge.
int64_t DaysLeft(const Layout& layout, WallMs now);

// Warns before a layout's time field overflows, and before ids outgrow the width of an obfuscated
// tag. One thread.
class LayoutEndWatch {
 public:
  static constexpr int64_t kWarnDays = 365;

  explicit LayoutEndWatch(const Layout& layout) : layout_(layout) {}

  // Records a served tag's current definition.
  void Note(const TagDefinition& tag);

  // Call this regularly. In the last year of the layout or of a tag, returns a sentence for the
  // log, once a day by the boot clock.
  std::optional<std::string> Check(Now now);

 private:
  const Layout layout_;
  std::map<std::string, WallMs> tags_;  // tags that end before the layout
  std::optional<BootMs> warned_;
};

}  // namespace firn
