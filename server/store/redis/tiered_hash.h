#pragma once

#include <cstdint>
#include <limits>
#include <optional>
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
// 8. A connection may lead to a server that was not used for a while and has its old `ids`, such as
//    an old primary. So the caller fences the hash on each new connection: a hash whose segments
//    end below the tag's ledger, as just read, is cleared. Nothing is taken before.
// 9. A segment replaces the rest of a hash that ends below the ledger: numbers between the two were
//    issued elsewhere.
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
    Range range{};          // empty: no numbers are available now
    bool bring = false;     // the caller must bring the next segment
    int64_t step = 0;       // the size of the current one; 0: there was none
    Milliseconds lasts{0};  // how long it lasts at its pace
    bool unfenced = false;  // nothing was taken: Fence first
    // The hash continues here, below what the caller issued: it was put back. Clear it.
    std::optional<int64_t> back_at{};
  };

  // What the caller knows of a tag's hash.
  struct Known {
    uint64_t connection = 0;  // on which it fenced the hash; 0: on none
    int64_t issued = 0;       // the end of what it took last
  };

  TieredHash(Options options, const Clock& clock, Entropy& entropy);

  // `cluster` is the caller's uuid. Codes of all: kCorrupt: the hash was edited, or has numbers
  // that the ledger does not cover; kInvalid: it belongs to another cluster.

  // Takes at most `size` numbers (1 or more). A failure gives none; kUnknown: they are lost.
  Result<Taken> Take(const TagDefinition& tag, const std::string& cluster, int64_t size,
                     Known known);

  struct Filled {
    int64_t thrown_away = 0;  // numbers of older segments
    bool was_empty = false;   // there was none, or Redis has lost it
  };

  // Puts a segment in, which was taken when the tag's ledger was at `ledger`. kConflict: another
  // one is there already; then, and after any other failure, the segment is lost.
  Result<Filled> Fill(const TagDefinition& tag, const std::string& cluster, Range segment,
                      int64_t ledger);

  static constexpr int64_t kEverything = std::numeric_limits<int64_t>::max();

  struct Fenced {
    uint64_t connection = 0;           // for Known
    std::optional<int64_t> cleared{};  // where the segments ended that were cleared
  };

  // Clears the hash if its segments end below `least`: nothing of them is given to anybody after
  // this, and the next Fill counts them as thrown away. kConflict while another server brings a
  // segment, which may be what is missing.
  Result<Fenced> Fence(const TagDefinition& tag, const std::string& cluster, int64_t least);

 private:
  using Answer = std::vector<std::string>;

  Status Connect();
  Result<Answer> Run(const std::string& script, const TagDefinition& tag, Answer arguments);

  const Options options_;
  RedisConnection connection_;
  StoreLink link_;
  uint64_t connections_ = 0;  // made so far
};

}  // namespace firn
