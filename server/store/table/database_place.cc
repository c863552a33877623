#include "server/store/table/database_place.h"

namespace firn {

Status TakesNoWrites(const DatabasePlace& place, const std::string& why) {
  return Unavailable(place.address.ToString() + " takes no writes (" + why +
                     "); promote it, or name the primary as its address");
}

}  // namespace firn
