#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/tag/ini_line.h"
#include "common/tag/tag_definition.h"

namespace firn {

// Tag definitions as a file that people write:
//
//     # ids of the shop
//     [order]
//     strategy = segment          ; a comment after a space
//     step     = 1000
//     plugins  = limit, history
//     limit.per_second = 5000
//     text     = "{date:%y%m%d} {id:09}"
//
//     ["a name with ] or \" in it"]
//     strategy = snowflake
//
// One section a tag, the keys of common/tag/tag_fields.h, each at most once, `strategy` always.
// A value in double quotes may hold anything printable (\" and \\ inside); without them it ends
// before " ;" and loses the spaces around it. A line that begins with # or ; is a comment.
//
// Not read from a file: `high`, which is the ledger's.

inline constexpr size_t kTagIniBytesMax = 1 << 20;
inline constexpr size_t kTagIniTagsMax = 10'000;
inline constexpr size_t kTagIniFaultsMax = 100;

struct TagIni {
  std::vector<TagDefinition> tags;  // in the file's order; to be used only when there are no faults
  std::vector<LineFault> faults;    // by line; at most kTagIniFaultsMax

  Status status() const { return StatusOf(faults); }
};

// Never fails as a whole: whatever is wrong becomes a fault of its line.
TagIni ParseTagIni(std::string_view text);

// The file of these definitions, each of which CheckTag accepts. ParseTagIni gives the same
// definitions back, but for `high`, which is left out, as are fields at their defaults.
std::string WriteTagIni(const std::vector<TagDefinition>& tags);

}  // namespace firn
