#include "common/text/fold.h"

#include <algorithm>

#include "common/base/cat.h"

namespace firn {

std::string FoldText(std::string_view text, size_t indent, size_t width) {
  std::string folded;
  size_t column = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (column > indent && column + end + 1 > width) {
      folded += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      folded += ' ';
      ++column;
    }
    folded += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return folded;
}

std::string FlagLine(std::string_view name, bool takes_value, std::string_view text) {
  constexpr size_t kColumn = 28;
  constexpr size_t kWidth = 96;
  std::string line = Cat("  --", name, takes_value ? "=..." : "");
  const bool fits = line.size() + 2 <= kColumn;
  line += (fits ? "" : "\n") + std::string(fits ? kColumn - line.size() : kColumn, ' ');
  return line + FoldText(text, kColumn, kWidth) + "\n";
}

}  // namespace firn
