#pragma once

#include <cstdint>
#include <string_view>

namespace firn {

// How urgently an operator must act, most urgent first. Used by findings, a server's status, the
// console and printed lists.
enum class Urgency : uint8_t {
  kData,     // data were lost, or ids may be duplicated: act before anything else
  kRefused,  // calls are refused now
  kSoon,     // calls will be refused, or records are lost, unless it is fixed
  kNote,     // nothing is wrong
};

// "data", "refused", "soon", "note".
constexpr std::string_view UrgencyName(Urgency urgency) {
  switch (urgency) {
    case Urgency::kData:
      return "data";
    case Urgency::kRefused:
      return "refused";
    case Urgency::kSoon:
      return "soon";
    case Urgency::kNote:
      break;
  }
  return "note";
}

}  // namespace firn
