#include "common/tag/obfuscated_end.h"

#include <cstdint>

#include "common/base/cat.h"
#include "common/tag/numbers_left.h"
#include "common/time/civil_time.h"

namespace firn {
namespace {

constexpr const char* kRemedy = "use obfuscate.width=19, which holds every id";

// The largest id of the tick, for any machine and method. No width holds an id with bit 63 set.
uint64_t LargestId(const Layout& layout, Tick tick) {
  const Field* const method = layout.Find(FieldKind::kMethod);
  const MachineId machine(static_cast<uint16_t>(layout.machines() - 1));
  const uint64_t base = layout.BaseBits(machine, method == nullptr ? 0 : method->max());
  return static_cast<uint64_t>(layout.PackUnchecked(base, tick, layout.sequence().max()));
}

}  // namespace

std::optional<WallMs> ObfuscatedEnd(const TagDefinition& tag, const Layout& layout) {
  if (tag.strategy != "snowflake" || !tag.HasPlugin("obfuscate")) return std::nullopt;
  const int64_t end = NumbersEnd(tag);
  if (end == INT64_MAX) return layout.end();
  const auto limit = static_cast<uint64_t>(end);
  int64_t fits = -1, beyond = layout.last_tick().count() + 1;
  while (beyond - fits > 1) {
    const int64_t middle = fits + (beyond - fits) / 2;
    (LargestId(layout, Tick(middle)) < limit ? fits : beyond) = middle;
  }
  return layout.StartOf(Tick(beyond));
}

Status CheckObfuscatedEnd(const TagDefinition& tag, const Layout& layout, WallMs now) {
  const std::optional<WallMs> end = ObfuscatedEnd(tag, layout);
  if (!end || *end == layout.end() || *end - now >= kObfuscatedLeast) return {};
  const std::string what =
      Cat("tag '", tag.name, "': obfuscate.width: ids of this layout have more than ",
          tag.obfuscate_width, " digits ");
  if (*end <= now) return Invalid(Cat(what, "already; ", kRemedy));
  return Invalid(Cat(what, "from ", FormatRfc3339(*end), " on, within a year; ", kRemedy));
}

std::string ObfuscatedEndNote(const TagDefinition& tag, const Layout& layout, WallMs now) {
  const std::optional<WallMs> end = ObfuscatedEnd(tag, layout);
  if (!end || *end == layout.end() || *end - now >= kObfuscatedWarn) return {};
  const std::string what =
      Cat("tag '", tag.name,
          "': its ids have more digits than obfuscate.width=", tag.obfuscate_width, " ");
  if (*end <= now)
    return what + "already, and its calls are refused; create another tag with width 19";
  return Cat(what, "from ", FormatRfc3339(*end), " on, and its calls are then refused; ", kRemedy,
             " for a tag that must last longer");
}

}  // namespace firn
