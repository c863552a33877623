#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace firn {

// Splits a flag's value at commas; omits empty parts.
inline std::vector<std::string> CommaParts(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

}  // namespace firn
