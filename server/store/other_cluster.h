#pragma once

#include <string_view>

#include "common/base/cat.h"
#include "common/base/status.h"

namespace firn {

// Refusal of a tag's counter that is marked for another cluster, whose numbers this cluster's
// ledger does not know. `counter`: where it is; `field`: the name of the mark.
inline Status OfAnotherCluster(std::string_view counter, std::string_view cluster,
                               std::string_view field) {
  return Denied(
      Cat(counter, " belongs to the cluster ", cluster,
          "; use another store or tag in this cluster, or, once that cluster takes no more "
          "numbers from it, set ",
          field, " to ''"));
}

}  // namespace firn
