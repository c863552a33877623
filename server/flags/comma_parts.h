#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace firn {

// What stands between the commas of a flag's value; where nothing stands, nothing is meant.
inline std::vector<std::string> CommaParts(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

}  // namespace firn
