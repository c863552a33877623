#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "common/time/backoff.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/range.h"
#include "server/store/redis/redis_connection.h"
#include "server/store/store_link.h"

namespace firn {

// A tag's numbers in Redis, shared by all servers: a hash, <prefix><tag>:tiered, that scripts move.
//
//     cluster             the uuid of the cluster whose ledger covers the numbers
//     cur, max, left      the segment that numbers come from; cur + left = max, or it was edited
//     next, next_max      the one after it, once somebody has brought it
//     step, filled        how large the segment is, and when it became the current one
//     ids                 run_id and master_replid of the server that was given the segment
//     form                of the tag (FormOf), when the segment was brought
//     asked, asked_by     when somebody was told to bring the next one, and by which server
//
// 1. Every segment is covered by the tag's ledger before it gets here.
// 2. Numbers are taken in order, each by one run of a script that first compares `ids` with the
//    server's own. When either has changed (restart, fail-over, fail-back), the server may have
//    lost what was taken last: nothing of the rest is given out any more. (A primary's first
//    replica changes its master_replid, too; that costs the rest of a segment and nothing else.)
// 3. A segment is put in by one script, sent once, and only at or above every segment before.
// 4. Every script first compares `cluster` with the caller's: the ledger of another cluster says
//    nothing of these numbers, so a hash of another cluster is neither taken from nor written to.
// 5. Numbers that were brought for another form of the tag are given to nobody: the ledger knew
// that
//    form when it covered them, so whoever has another one is to read the tag anew.
// 6. Of all who find that a segment runs low, one is told to bring the next; when it does not
//    within kBringPatience, another one.
// 7. Numbers below the tag's `start` are left out.
//
// Owned by one thread, which waits for the server up to a few times the place's time limit.
class TieredHash {
 public:
  struct Options {
    RedisPlace place;
    std::string prefix = "firn:";  // of keys
    Backoff::Options backoff{};    // between attempts to connect
  };
  static constexpr int64_t kNumbersEnd = int64_t{1} << 53;
  static constexpr Milliseconds kBringPatience{2'000};

  struct Taken {
    Range range;            // empty: there is nothing just now
    bool bring = false;     // the caller is to bring the next segment
    int64_t step = 0;       // the size of the present one; 0: there was none
    Milliseconds lasts{0};  // how long it lasts at its pace
  };

  TieredHash(Options options, const Clock& clock, Entropy& entropy);

  // `cluster` is the caller's, by uuid. kCorrupt of all: somebody has edited the hash, or it knows
  // more than the ledger does; kInvalid: it is another cluster's.

  // At most `size` numbers, which is at least 1. A failure has given none; kUnknown: they are lost.
  Result<Taken> Take(const TagDefinition& tag, const std::string& cluster, int64_t size);

  struct Filled {
    int64_t thrown_away = 0;  // numbers of older segments
    bool was_empty = false;   // there was nothing, or Redis has forgotten what there was
  };

  // Puts a segment in. kConflict: another one is there already; then, and after any other failure,
  // the segment is lost.
  Result<Filled> Fill(const TagDefinition& tag, const std::string& cluster, Range segment);

  // Nothing of what is in it now is given to anybody after this. The next Fill counts it.
  Status Clear(const TagDefinition& tag, const std::string& cluster);

 private:
  using Answer = std::vector<std::string>;

  Status Connect();
  Result<Answer> Run(const std::string& script, const TagDefinition& tag, Answer arguments);

  const Options options_;
  RedisConnection connection_;
  StoreLink link_;
};

}  // namespace firn
