#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/time/backoff.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/segment/range_store.h"
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
//  1. A script's numbers are exact up to 2^53 only, so numbers end there (kExhausted).
//  2. A range begins at `at_least` or above. If the hash is missing or lower, the store skips the
//     difference. A hash below a range that this store has given has lost data, as Redis may: then
//     the store also raises an alarm.
//  3. A hash with invalid values, or far beyond the used numbers, is left unchanged until an
//     operator corrects it. The refusal says what is wrong.
//  4. A later call replaces a failed connection, with backoff between the attempts.
//
// Redis may answer before the data are on its disk or a replica. If it then gives a range a second
// time, the ledger refuses it.
//
// Owned by one thread, which waits for the server up to a few times the place's time limit.
class RedisStore final : public RangeStore {
 public:
  struct Options {
    std::string name;  // as tags name it
    RedisPlace place;
    std::string prefix = "firn:";  // of keys
    Backoff::Options backoff{};    // between attempts to connect
  };
  // Receives a sentence whenever the server has lost data.
  using Alarm = std::function<void(const std::string&)>;

  static constexpr int64_t kNumbersEnd = int64_t{1} << 53;

  RedisStore(Options options, const Clock& clock, Entropy& entropy, Alarm alarm);

  std::string_view name() const override { return options_.name; }
  void Listen(const LedgerWord& word) override { cluster_ = word.cluster; }
  Status Check(const TagDefinition& tag) override;
  Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) override;

 private:
  Status Connect();
  Result<std::vector<std::string>> Run(const TagDefinition& tag,
                                       const std::vector<std::string>& arguments);
  void Judge(const std::string& tag, const std::string& max, int64_t at_least);

  const Options options_;
  const Alarm alarm_;
  RedisConnection connection_;
  StoreLink link_;
  std::string cluster_;
  std::map<std::string, int64_t> given_;  // by tag: the end of the last range
};

}  // namespace firn
