#pragma once

#include <string>
#include <string_view>
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

// An owner of a machine id as a cell shows it: "firn 127.0.0.1:7609" for
// "firn.7609.2130706433.9e107d9d372bb682", and "firn 127.0.0.1:7609 for shop-1" if a slash and the
// name of a lease follow. Whatever has another form stays as it is.
std::string FormatOwner(std::string_view owner);

}  // namespace firn
