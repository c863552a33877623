#include "server/issue/snowflake/layout_end.h"

#include "common/base/cat.h"

namespace firn {
namespace {

constexpr Milliseconds kDay = std::chrono::hours(24);

}  // namespace

int64_t DaysLeft(const Layout& layout, WallMs now) { return (layout.end() - now) / kDay; }

std::optional<std::string> LayoutEndWatch::Check(Now now) {
  const int64_t days = DaysLeft(layout_, now.wall);
  if (days >= kWarnDays) return std::nullopt;
  if (warned_ && now.boot - *warned_ < kDay) return std::nullopt;
  warned_ = now.boot;
  return Cat("layout ", layout_.text(), " runs out in ", days,
             " days; from then on no id can be made in it");
}

}  // namespace firn
