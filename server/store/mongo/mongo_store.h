#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/time/backoff.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/segment/range_store.h"
#include "server/store/counter_watch.h"
#include "server/store/mongo/mongo_connection.h"
#include "server/store/store_link.h"

namespace firn {

// Ranges from a MongoDB collection, one document per tag. The store has returned all numbers below
// `max`.
//
//  1. A range counts if a majority of the replica set has acknowledged the command that advanced
//     the document, and that command's reply contains the range. An unknown outcome wastes the
//     range.
//  2. A range begins at `at_least` or above. If the document is lower, a first command raises it to
//     `at_least` ($max), and a second one takes the range ($inc): MongoDB refuses both on one field
//     in one update. If the effect of the first one is lost, the next call repeats it, which is
//     harmless.
//  3. A document with invalid values, or with `max` far above the used numbers, is not changed
//     until an operator corrects it. The refusal names the fault.
//  4. A missing document is created only while the tag has no ledger.
//
// Other programs may take ranges from the same documents by $inc.
//
// Owned by one thread. A call can block for a few times the place's time limit.
class MongoStore final : public RangeStore {
 public:
  struct Options {
    std::string name;  // its name in tag definitions
    MongoPlace place;
    Backoff::Options backoff{};  // between attempts to connect
  };

  // `clock` and `entropy` must outlive this.
  MongoStore(Options options, const Clock& clock, Entropy& entropy, CounterWatch::Alarm alarm);

  std::string_view name() const override { return options_.name; }
  void Listen(const LedgerWord& word) override { cluster_ = word.cluster; }
  Status Check(const TagDefinition& tag) override;
  Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) override;

 private:
  using Counter = MongoConnection::Counter;

  Status NoDocument(const TagDefinition& tag, int64_t at_least) const;
  // Returns the document. Creates it if it is missing and the tag has no ledger yet.
  Result<Counter> ReadOrMake(const TagDefinition& tag, int64_t at_least, int64_t size);
  Result<Range> Move(const TagDefinition& tag, int64_t at_least, int64_t size);

  const Options options_;
  MongoConnection connection_;
  StoreLink link_;
  std::string cluster_;
  CounterWatch watch_;
};

}  // namespace firn
