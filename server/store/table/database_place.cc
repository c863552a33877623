#include "server/store/table/database_place.h"

#include "common/base/secret_file.h"

namespace firn {

Result<DatabaseCredentials> ReadCredentials(const DatabasePlace& place) {
  FIRN_ASSIGN(const std::string text, ReadSecretFile(place.credentials_file));
  const std::string line = text.substr(0, text.find_first_of("\r\n"));
  const size_t colon = line.find(':');
  if (colon == std::string::npos || colon == 0) {
    return Invalid(place.credentials_file + ": must hold one line user:password");
  }
  return DatabaseCredentials{line.substr(0, colon), line.substr(colon + 1)};
}

Status TakesNoWrites(const DatabasePlace& place, const std::string& why) {
  return Unavailable(place.address.ToString() + " takes no writes (" + why +
                     "); promote it, or name the primary as its address");
}

}  // namespace firn
