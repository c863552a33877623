#include "common/tag/numbers_left.h"

#include <string>

#include "common/base/cat.h"
#include "common/text/time_zone.h"

namespace firn {
namespace {

constexpr int64_t kWidthOfAllIds = 19;
constexpr const char* kWiderTag = "create a tag with a larger obfuscate.width for new ids";

std::optional<NumbersNote> NoteDated(const TagDefinition& tag, const DatedNumbers& numbers,
                                     WallMs now) {
  const TimeZone zone = TimeZone::Load(tag.zone).value_or(TimeZone::Utc());
  const int64_t period = numbers.PeriodAt(now, zone);
  if (tag.NextBegin() < numbers.End(period)) return std::nullopt;
  return NumbersNote{
      true, Cat("tag '", tag.name, "': the numbers of ", period, " are used up"),
      Cat("wait for the next ", PeriodName(tag.period), ", or create a tag with more digits")};
}

}  // namespace

int64_t NumbersEnd(const TagDefinition& tag) {
  if (!tag.HasPlugin("obfuscate") || tag.obfuscate_width >= kWidthOfAllIds) return INT64_MAX;
  int64_t end = 1;
  for (int64_t i = 0; i < tag.obfuscate_width; ++i) end *= 10;
  return end;
}

int64_t NumbersEndFrom(const TagDefinition& tag, int64_t next) {
  const auto numbers = tag.Dated();
  if (!numbers || next <= 1) return NumbersEnd(tag);
  return numbers->End(numbers->PeriodOf(next - 1));
}

Status CheckNumbersLeft(const TagDefinition& tag, int64_t next) {
  const int64_t end = NumbersEnd(tag);
  if (next < end) return {};
  if (end == INT64_MAX) return Exhausted("there are no more numbers of 63 bits");
  return Exhausted(Cat("its numbers ended at ", end - 1, ", the last that obfuscate.width=",
                       tag.obfuscate_width, " holds; ", kWiderTag));
}

std::optional<NumbersNote> NoteNumbersLeft(const TagDefinition& tag, WallMs now) {
  if (!tag.HasLedger() || tag.disabled) return std::nullopt;
  if (const auto numbers = tag.Dated()) return NoteDated(tag, *numbers, now);
  const int64_t next = tag.NextBegin(), end = NumbersEnd(tag);
  const std::string fix = end == INT64_MAX ? "create another tag for new ids" : kWiderTag;
  if (const Status none = CheckNumbersLeft(tag, next); !none.ok()) {
    return NumbersNote{true, Cat("tag '", tag.name, "': ", none.message()), fix};
  }
  if (end - next >= end / 10) return std::nullopt;
  return NumbersNote{
      false, Cat("tag '", tag.name, "' has ", end - next, " numbers left, up to ", end - 1), fix};
}

}  // namespace firn
