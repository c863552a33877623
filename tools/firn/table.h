#pragma once

#include <string>
#include <vector>

namespace firn {

// A text table with a heading. Each column is as wide as its widest cell.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) { rows_.push_back(std::move(heading)); }

  // Adds a row, which must have as many cells as the heading.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace firn
