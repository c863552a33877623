#pragma once

#include <string_view>

#include "common/base/cat.h"
#include "common/base/status.h"

namespace firn {

// Returns the refusal for a tag's counter that is marked for another cluster, because this
// cluster's ledger does not know its numbers. `counter`: where it is stored; `field`: the mark's
// name.
inline Status OfAnotherCluster(std::string_view counter, std::string_view cluster,
                               std::string_view field) {
  return Denied(
      Cat(counter, " belongs to the cluster ", cluster,
          "; use another store or tag in this cluster, or, once that cluster takes no more "
          "numbers from it, set ",
          field, " to ''"));
}

}  // namespace firn
