#include "tests/sim/segment/sim_store.h"

#include <algorithm>
#include <utility>

namespace firn {

Result<Range> SimStore::Advance(const TagDefinition& tag, int64_t at_least, int64_t size) {
  SimDatabase& database = shared_.database;
  if (database.away) return Unavailable("the database is away");
  int64_t& next = database.next[tag.name];
  next += std::exchange(database.late[tag.name], 0);
  const Range range{std::max(next, at_least), std::max(next, at_least) + size};
  switch (shared_.dice.Below(30)) {
    case 0:
      return Unavailable("the request was lost");
    case 1:
      next = range.end;
      return Unknown("the answer was lost");
    case 2:
      // The row was set above the highest id of a tag with this name.
      if (shared_.undefined_from) {
        const int64_t beyond = std::max(at_least, *shared_.undefined_from);
        return Range{beyond, beyond + size};
      }
      break;
    case 3:
      // The first request has raised the row to the ledger.
      next = range.begin;
      return Unavailable("the second request was lost");
    case 4:
      database.late[tag.name] += size;
      return Unknown("the command is executed after the client has given up");
    case 5:
      return Unknown("no majority has acknowledged the command, and it was rolled back");
    default:
      break;
  }
  next = range.end;
  return range;
}

}  // namespace firn
