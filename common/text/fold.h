#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace firn {

// Returns `text` broken at spaces into lines that end before column `width`, for a text that starts
// in column `indent`; further lines are indented to that column. A longer word gets its own line.
std::string FoldText(std::string_view text, size_t indent, size_t width);

// Returns a line of --help: "  --name=..." and, in a column right of it or below it, the text.
std::string FlagLine(std::string_view name, bool takes_value, std::string_view text);

}  // namespace firn
