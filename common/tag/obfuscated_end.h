#pragma once

#include <optional>
#include <string>

#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/tag/tag_definition.h"

namespace firn {

// The time from which ids of an obfuscated snowflake tag may not fit into its width, so that its
// calls are refused; at the latest the layout's end. Empty for all other tags.
std::optional<WallMs> ObfuscatedEnd(const TagDefinition& tag, const Layout& layout);

// If that end is nearer than these, a definition is refused, or people are warned.
inline constexpr Milliseconds kObfuscatedLeast = std::chrono::days(365);
inline constexpr Milliseconds kObfuscatedWarn = std::chrono::days(3'653);  // 10 years

// kInvalid if the tag's ids do not fit at `now`, or stop fitting within a year.
Status CheckObfuscatedEnd(const TagDefinition& tag, const Layout& layout, WallMs now);

// Returns a warning if they stop fitting within ten years; empty otherwise.
std::string ObfuscatedEndNote(const TagDefinition& tag, const Layout& layout, WallMs now);

}  // namespace firn
