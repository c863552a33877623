#include "server/store/mongo/mongo_store.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "server/store/jump_limit.h"
#include "server/store/other_cluster.h"

namespace firn {

MongoStore::MongoStore(Options options, const Clock& clock, Entropy& entropy,
                       CounterWatch::Alarm alarm)
    : options_(std::move(options)),
      connection_(options_.place),
      link_(options_.backoff, clock, entropy),
      watch_(options_.name, std::move(alarm)) {}

Status MongoStore::Check(const TagDefinition& tag) {
  FIRN_TRY(link_.Connect(connection_));
  const auto counter = connection_.Read(tag.name);
  if (!counter.ok()) {
    return connection_.is_open() ? counter.status() : link_.Lost(counter.status());
  }
  return *counter || tag.high == 0 ? Status() : NoDocument(tag, tag.NextBegin());
}

Status MongoStore::NoDocument(const TagDefinition& tag, int64_t at_least) const {
  return NotFound(Cat("there is no document of this tag in ", options_.place.database, ".",
                      options_.place.collection, "; create it: {_id: ", Quoted(tag.name),
                      ", max: NumberLong('", at_least, "'), step: NumberLong('", tag.step, "')}"));
}

Result<MongoStore::Counter> MongoStore::ReadOrMake(const TagDefinition& tag, int64_t at_least,
                                                   int64_t size) {
  FIRN_ASSIGN(std::optional<Counter> counter, connection_.Read(tag.name));
  const bool has_ledger = at_least > tag.start.value_or(1);
  if (!counter && !has_ledger) {
    FIRN_TRY(connection_.Insert(tag.name, {.max = at_least, .step = size}));
    FIRN_ASSIGN(counter, connection_.Read(tag.name));
  }
  if (!counter) return NoDocument(tag, at_least);
  if (counter->max < 0) {
    return Corrupt(Cat("max is ", counter->max, ", which is negative; correct the document"));
  }
  if (counter->step < 1) {
    return Corrupt(Cat("step is ", counter->step, ", which is invalid; correct the document"));
  }
  if (!counter->cluster.empty() && counter->cluster != cluster_) {
    return OfAnotherCluster(
        Cat("its document in ", options_.place.database, ".", options_.place.collection),
        counter->cluster, "cluster");
  }
  return *counter;
}

Result<Range> MongoStore::Move(const TagDefinition& tag, int64_t at_least, int64_t size) {
  FIRN_ASSIGN(const Counter counter, ReadOrMake(tag, at_least, size));
  const int64_t begin = std::max(counter.max, at_least);
  const int64_t left = kRangeEnd - begin;
  if (left <= 0) return Exhausted("63 bits are used up");
  const int64_t take = std::min(size, left);
  // The ceiling leaves room for the range, so that `max` cannot exceed 63 bits.
  const int64_t most = kRangeEnd - take;
  const int64_t ceiling = at_least > most - kJumpMax ? most : at_least + kJumpMax;
  if (counter.max > ceiling) {
    return Corrupt(Cat("max is ", counter.max, ", far beyond the ", at_least,
                       " that the ledger knows; if that is intended, raise the tag's start to it"));
  }
  if (counter.max < at_least) {
    if (at_least > tag.start.value_or(1)) watch_.Judge(tag.name, counter.max, at_least);
    FIRN_TRY(connection_.Raise(tag.name, at_least));
  }
  FIRN_ASSIGN(const std::optional<Counter> moved,
              connection_.Move(tag.name, at_least, ceiling, take, cluster_));
  if (!moved) return Unavailable("the document changed after it was read; try again");
  if (moved->max < take || moved->max - take < at_least) {
    return Corrupt(
        Cat("the database returned ", moved->max, ", which is below numbers that were used"));
  }
  watch_.Moved(tag.name, moved->max);
  return Range{.begin = moved->max - take, .end = moved->max};
}

Result<Range> MongoStore::Advance(const TagDefinition& tag, int64_t at_least, int64_t size) {
  if (at_least < 0 || size < 1)
    return Invalid(Cat("a range of ", size, " numbers from ", at_least, " is invalid"));
  if (at_least >= kRangeEnd) return Exhausted("63 bits are used up");
  FIRN_TRY(link_.Connect(connection_));
  return link_.Ended(connection_, Move(tag, at_least, size));
}

}  // namespace firn
