#include "client/lease/lease_options.h"

#include "common/base/cat.h"
#include "common/id/lease_name.h"
#include "common/time/civil_time.h"

namespace firn {

static_assert(LeaseOptions::kNameMax == kLeaseNameMax);

Status CheckLeaseOptions(const LeaseOptions& options) {
  if (!IsLeaseName(options.name)) {
    return Invalid(Cat("the name of a lease must have 1 to ", kLeaseNameMax,
                       " letters, digits or characters of ", kLeaseNameMarks));
  }
  if (options.ahead < LeaseOptions::kAheadMin || options.ahead > LeaseOptions::kAheadMax) {
    return Invalid(Cat("`ahead` of a lease is ", options.ahead.count(), " ms; it must be ",
                       LeaseOptions::kAheadMin.count(), " to ", LeaseOptions::kAheadMax.count(),
                       " ms"));
  }
  return {};
}

}  // namespace firn
