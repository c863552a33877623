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

// A tag's numbers in Redis, shared by all servers: a hash, <prefix><tag>:tiered, moved by scripts.
//
//     cluster             uuid of the cluster whose ledger covers the numbers
//     cur, max, left      the segment that numbers come from; cur + left = max, or it was edited
//     next, next_max      the segment after it, once a server has brought it
//     step, filled        the current segment's size, and when it became the current one
//     ids                 run_id and master_replid of the Redis server that was given the segment
//     form                of the tag (FormOf), when the segment was brought
//     asked, asked_by     when a server was last told to bring a segment, and the `ids` at the time
//
// 1. Every segment is covered by the tag's ledger before it gets here.
// 2. Numbers are taken in order, each by one run of a script that first compares `ids` with the
//    server's own. If either has changed (restart, failover, failback), the server may have lost
//    the last takes: the rest of the segment is not given out any more. (A primary's first replica
//    changes its master_replid, too; that costs the rest of a segment and nothing else.)
// 3. A segment is put in by one script, sent once, and only at or above every segment before.
// 4. Every script first compares `cluster` with the caller's: the ledger of another cluster does
//    not cover these numbers, so nothing is taken from its hash or written to it.
// 5. Numbers that were brought for another form of the tag are not given out: the ledger knew that
//    form when it covered them, so a caller with a different one must re-read the tag.
// 6. Of all servers that find a segment running low, one is asked to bring the next. If it does not
//    within kBringPatience, another one is asked.
// 7. Numbers below the tag's `start` are skipped.
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
    Range range;            // empty: no numbers are available now
    bool bring = false;     // the caller must bring the next segment
    int64_t step = 0;       // the size of the current one; 0: there was none
    Milliseconds lasts{0};  // how long it lasts at its pace
  };

  TieredHash(Options options, const Clock& clock, Entropy& entropy);

  // `cluster` is the caller's uuid. Codes of all: kCorrupt: the hash was edited, or has numbers
  // that the ledger does not cover; kInvalid: it belongs to another cluster.

  // Takes at most `size` numbers (1 or more). A failure gives none; kUnknown: they are lost.
  Result<Taken> Take(const TagDefinition& tag, const std::string& cluster, int64_t size);

  struct Filled {
    int64_t thrown_away = 0;  // numbers of older segments
    bool was_empty = false;   // there was none, or Redis has lost it
  };

  // Puts a segment in. kConflict: another one is there already. After this and any other failure
  // the segment is lost.
  Result<Filled> Fill(const TagDefinition& tag, const std::string& cluster, Range segment);

  // Prevents everything that is in it now from being given out. The next Fill counts it.
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
