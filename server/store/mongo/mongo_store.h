#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/time/backoff.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/segment/range_store.h"
#include "server/store/mongo/mongo_connection.h"
#include "server/store/store_link.h"

namespace firn {

// Ranges from a MongoDB collection, one document per tag. All numbers below `max` have been given.
//
//  1. A range counts if a majority of the replica set has acknowledged the command that moved the
//     document, and the range is in that command's reply. An unknown outcome wastes the range.
//  2. A range begins at `at_least` or above. If the document is lower, a first command raises it to
//     `at_least` ($max), and a second one takes the range ($inc): MongoDB refuses both on one field
//     in one update. If the first one is lost, the next call repeats it, which is harmless.
//  3. A document with invalid values, or far beyond the used numbers, is left unchanged until an
//     operator corrects it. The refusal says what is wrong.
//  4. A missing document is created only while the tag has no ledger.
//
// Other programs may take ranges from the same documents by $inc.
//
// Owned by one thread, which waits for the servers up to a few times the place's time limit.
class MongoStore final : public RangeStore {
 public:
  struct Options {
    std::string name;  // as tags name it
    MongoPlace place;
    Backoff::Options backoff{};  // between attempts to connect
  };
  // Receives a sentence whenever the database has lost data.
  using Alarm = std::function<void(const std::string&)>;

  // `clock` and `entropy` must outlive this.
  MongoStore(Options options, const Clock& clock, Entropy& entropy, Alarm alarm);

  std::string_view name() const override { return options_.name; }
  void Listen(const LedgerWord& word) override { cluster_ = word.cluster; }
  Status Check(const TagDefinition& tag) override;
  Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) override;

 private:
  using Counter = MongoConnection::Counter;

  Status Connect();
  Status NoDocument(const TagDefinition& tag, int64_t at_least) const;
  // Returns the document; creates it if the tag has no ledger yet.
  Result<Counter> ReadOrMake(const TagDefinition& tag, int64_t at_least, int64_t size);
  void Judge(const std::string& tag, int64_t max, int64_t at_least);
  Result<Range> Move(const TagDefinition& tag, int64_t at_least, int64_t size);

  const Options options_;
  const Alarm alarm_;
  MongoConnection connection_;
  StoreLink link_;
  std::string cluster_;
  std::map<std::string, int64_t> given_;  // by tag: the end of the last range
};

}  // namespace firn
