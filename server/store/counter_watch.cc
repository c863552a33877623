#include "server/store/counter_watch.h"

#include "common/base/cat.h"
#include "common/log/log.h"

namespace firn {

void CounterWatch::Judge(const std::string& tag, int64_t counter, int64_t ledger,
                         bool is_lost) const {
  if (counter >= ledger) return;
  const auto moved = moved_.find(tag);
  if (is_lost || (moved != moved_.end() && counter < moved->second)) {
    return alarm_(Cat("tag ", tag, ": the database has gone back in time, to ", counter, " from ",
                      ledger, "; the difference is skipped"));
  }
  LogWarning("store_behind").With("tag", tag).With("store", store_)
      << "tag " << tag << ": its counter in store " << store_ << " is at " << counter
      << ", below the ledger at " << ledger
      << ": another store issued numbers, or the database lost data; the difference is skipped";
}

}  // namespace firn
