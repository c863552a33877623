#pragma once

#include <optional>
#include <string>

#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/tag/tag_definition.h"

namespace firn {

// The moment from which some id of an obfuscated snowflake tag does not fit into its width, so that
// calls for it are refused: at the latest the end of the layout. Empty for all other tags.
std::optional<WallMs> ObfuscatedEnd(const TagDefinition& tag, const Layout& layout);

// How long before such an end a definition is refused, and how long before people are warned.
inline constexpr Milliseconds kObfuscatedLeast = std::chrono::days(365);
inline constexpr Milliseconds kObfuscatedWarn = std::chrono::days(3'653);  // 10 years

// kInvalid when the tag's ids do not fit at `now`, or not for a year.
Status CheckObfuscatedEnd(const TagDefinition& tag, const Layout& layout, WallMs now);

// A sentence for people when they do not fit for ten years; empty otherwise.
std::string ObfuscatedEndNote(const TagDefinition& tag, const Layout& layout, WallMs now);

}  // namespace firn
