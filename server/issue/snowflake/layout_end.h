#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/id/layout.h"
#include "common/tag/tag_definition.h"
#include "common/time/clock.h"

namespace firn {

// Whole days from `now` until the layout's time field has run out and every call is refused with
// EXHAUSTED; 0 or less from then on. For a gauge.
int64_t DaysLeft(const Layout& layout, WallMs now);

// Says in time that a layout comes to its end, or that its ids outgrow the width of an obfuscated
// tag. One thread.
class LayoutEndWatch {
 public:
  static constexpr int64_t kWarnDays = 365;

  explicit LayoutEndWatch(const Layout& layout) : layout_(layout) {}

  // A tag that is served, as it is defined now.
  void Note(const TagDefinition& tag);

  // To be called now and then. In the last year of the layout or of a tag a sentence for the log,
  // once a day of the boot clock; otherwise nothing.
  std::optional<std::string> Check(Now now);

 private:
  const Layout layout_;
  std::map<std::string, WallMs> tags_;  // that end before the layout does
  std::optional<BootMs> warned_;
};

}  // namespace firn
