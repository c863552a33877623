#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/time/backoff.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/segment/range_store.h"
#include "server/store/counter_watch.h"
#include "server/store/redis/redis_connection.h"
#include "server/store/store_link.h"

namespace firn {

// Ranges from Redis. A hash for each tag, under <prefix><tag>, is advanced by one script:
//
//     cur   begin of the latest range
//     max   its end; the counter
//     step  its size
//     owner uuid of the cluster whose ledger covers the numbers; each range writes it, and a hash
//           of another cluster is refused
//
//  1. Numbers end at 2^53 (kExhausted), because scripts cannot represent higher numbers exactly.
//  2. A range begins at `at_least` or above. If the hash is missing or lower, the store skips the
//     difference. If the hash is below a range that this store has returned, Redis has lost data,
//     and the store also raises an alarm.
//  3. A hash with invalid values, or far above the used numbers, is not changed until an operator
//     corrects it. The refusal names the fault.
//  4. A later call replaces a failed connection, with backoff between the attempts.
//
// Redis may answer before the data are on its disk or on a replica. If it loses them and returns a
// range a second time, the ledger refuses that range.
//
// Owned by one thread. A call can block for a few times the place's time limit.
class RedisStore final : public RangeStore {
 public:
  struct Options {
    std::string name;  // its name in tag definitions
    RedisPlace place;
    std::string prefix = "firn:";  // of keys
    Backoff::Options backoff{};    // between attempts to connect
  };

  static constexpr int64_t kNumbersEnd = int64_t{1} << 53;

  RedisStore(Options options, const Clock& clock, Entropy& entropy, CounterWatch::Alarm alarm);

  std::string_view name() const override { return options_.name; }
  void Listen(const LedgerWord& word) override { cluster_ = word.cluster; }
  Status Check(const TagDefinition& tag) override;
  Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) override;

 private:
  Result<std::vector<std::string>> Run(const TagDefinition& tag,
                                       const std::vector<std::string>& arguments);

  const Options options_;
  RedisConnection connection_;
  StoreLink link_;
  std::string cluster_;
  CounterWatch watch_;
};

}  // namespace firn
