#include "server/lease/lease_desk.h"

namespace firn {

std::string_view LeaseVerdictName(LeaseVerdict verdict) {
  switch (verdict) {
    case LeaseVerdict::kGranted:
      return "granted";
    case LeaseVerdict::kEnded:
      return "ended";
    case LeaseVerdict::kBadRequest:
      return "bad_request";
    case LeaseVerdict::kUnknown:
      return "unknown";
    case LeaseVerdict::kOutdated:
      return "outdated";
    case LeaseVerdict::kRevoked:
      return "revoked";
    case LeaseVerdict::kElsewhere:
      return "elsewhere";
    case LeaseVerdict::kLater:
      return "later";
    case LeaseVerdict::kLimit:
      return "limit";
    case LeaseVerdict::kRefused:
      return "refused";
  }
  return "unknown";
}

}  // namespace firn
