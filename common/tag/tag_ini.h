#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/tag/ini_line.h"
#include "common/tag/tag_definition.h"

namespace firn {

// Tag definitions as an INI file:
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
// One section per tag, with the keys of common/tag/tag_fields.h. Each key occurs at most once;
// `strategy` is required. Double quotes permit any printable text (\" and \\ inside). A value
// without quotes ends before " ;" and loses the spaces around it. # and ; start comment lines.
//
// The file does not contain `high`, the ledger.

inline constexpr size_t kTagIniBytesMax = 1 << 20;
inline constexpr size_t kTagIniTagsMax = 10'000;

struct TagIni {
  std::vector<TagDefinition> tags;  // in the file's order; use them only if there are no faults
  std::vector<LineFault> faults;    // sorted by line; at most LineFaults::kMost

  Status status() const { return StatusOf(faults); }
};

// Never fails as a whole: each error becomes a fault of its line.
TagIni ParseTagIni(std::string_view text);

// Returns the file of these definitions, which must pass CheckTag. ParseTagIni returns the same
// definitions, except for `high`. The file omits `high`, and fields with default values.
std::string WriteTagIni(const std::vector<TagDefinition>& tags);

}  // namespace firn
