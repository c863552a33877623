#include "common/id/lease_name.h"

#include <algorithm>

namespace firn {

bool IsLeaseName(std::string_view text) {
  return !text.empty() && text.size() <= kLeaseNameMax &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  kLeaseNameMarks.find(c) != std::string_view::npos;
         });
}

}  // namespace firn
