#include "server/issue/snowflake/layout_end.h"

#include "common/base/cat.h"
#include "common/tag/obfuscated_end.h"

namespace firn {
namespace {

constexpr Milliseconds kDay = std::chrono::hours(24);

}  // namespace

int64_t DaysLeft(const Layout& layout, WallMs now) { return (layout.end() - now) / kDay; }

void LayoutEndWatch::Note(const TagDefinition& tag) {
  const std::optional<WallMs> end = ObfuscatedEnd(tag, layout_);
  if (end && *end < layout_.end()) {
    tags_[tag.name] = *end;
  } else {
    tags_.erase(tag.name);
  }
}

std::optional<std::string> LayoutEndWatch::Check(Now now) {
  if (warned_ && now.boot - *warned_ < kDay) return std::nullopt;
  std::string warning;
  const int64_t days = DaysLeft(layout_, now.wall);
  if (days < kWarnDays) {
    warning = Cat("layout ", layout_.text(), " ends in ", days,
                  " days; after that, no ids can be issued");
  }
  for (const auto& [tag, end] : tags_) {
    const int64_t left = (end - now.wall) / kDay;
    if (left >= kWarnDays) continue;
    warning +=
        Cat(warning.empty() ? "" : "; ", "ids of tag '", tag, "' outgrow its obfuscate.width in ",
            left, " days; after that, its calls are refused");
  }
  if (warning.empty()) return std::nullopt;
  warned_ = now.boot;
  return warning;
}

}  // namespace firn
