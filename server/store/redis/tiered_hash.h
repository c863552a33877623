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

// A tag's numbers in Redis, shared by all servers: a hash <prefix><tag>:tiered that scripts change.
//
//     cluster             uuid of the cluster whose ledger covers the numbers
//     cur, max, left      the current segment; cur + left = max, unless it was edited
//     next, next_max      the segment after it, once a server has brought it
//     step, filled        the current segment's size, and when it became the current one
//     ids                 run_id and master_replid of the Redis server that got the segment
//     form                the tag's form (FormOf) when the segment was brought
//     asked, asked_by     when a server was last asked to bring a segment, and `ids` at that time
//
//  1. The tag's ledger covers a segment before it is stored here.
//  2. Numbers are taken in order. The script that takes them first compares `ids` with the server's
//     current ids. If one has changed (restart, failover, failback), the server may have lost the
//     last takes, so the rest of the segment is not used. (A primary's first replica changes its
//     master_replid, too; that only wastes the rest of a segment.)
//  3. One script, sent once, stores a segment, and only at or above every earlier segment.
//  4. Every script first compares `cluster` with the caller's. Another cluster's ledger does not
//     cover these numbers, so its servers can neither take from the hash nor change it.
//  5. The scripts return no numbers that a server brought for another form of the tag. The ledger
//     covered those numbers in that form, so a caller with a different form must re-read the tag.
//  6. When a segment runs low, a script tells one server to bring the next segment. If that server
//     does not deliver within kBringPatience, the script tells another one.
//  7. Numbers below the tag's `start` are skipped.
//  8. A new connection may lead to an outdated server with unchanged `ids`, such as an old primary.
//     So on each new connection, the caller fences the hash before it takes numbers: if the
//     segments end below the tag's ledger, which was just read, the hash is cleared.
//  9. If the hash ends below the ledger, a new segment replaces its rest, because numbers between
//     the two were issued elsewhere.
//
// Owned by one thread. A call can block for a few times the place's time limit.
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
    int64_t step = 0;       // the current segment's size; 0: there is no segment
    Milliseconds lasts{0};  // how long the segment lasts at the current rate
    bool unfenced = false;  // Take returned no numbers: call Fence first
    // Set if the hash continues at this number, below numbers that the caller has issued: an old
    // copy was restored, and the hash must be cleared.
    std::optional<int64_t> back_at{};
  };

  // The caller's state of a tag's hash.
  struct Known {
    uint64_t connection = 0;  // the connection of the last Fence; 0: not fenced
    int64_t issued = 0;       // end of the numbers taken last
  };

  TieredHash(Options options, const Clock& clock, Entropy& entropy);

  // `cluster` is the caller's uuid. Codes of all functions: kCorrupt: the hash was edited, or has
  // numbers that the ledger does not cover; kInvalid: it belongs to another cluster.

  // Takes up to `size` numbers. A failure takes none, except that kUnknown may lose numbers.
  Result<Taken> Take(const TagDefinition& tag, const std::string& cluster, int64_t size,
                     Known known);

  struct Filled {
    int64_t thrown_away = 0;  // numbers of older segments
    bool was_empty = false;   // there was no hash, perhaps because Redis has lost it
  };

  // Stores a segment. `ledger`: the tag's ledger when the caller took the segment. kConflict: the
  // hash already has another segment. After any failure the segment is lost.
  Result<Filled> Fill(const TagDefinition& tag, const std::string& cluster, Range segment,
                      int64_t ledger);

  static constexpr int64_t kEverything = std::numeric_limits<int64_t>::max();

  struct Fenced {
    uint64_t connection = 0;           // for Known
    std::optional<int64_t> cleared{};  // end of the cleared segments
  };

  // Clears the hash if its segments end below `least`: no server can take their numbers afterwards,
  // and the next Fill counts them as discarded. kConflict while another server brings a segment,
  // which may be the missing one.
  Result<Fenced> Fence(const TagDefinition& tag, const std::string& cluster, int64_t least);

 private:
  using Answer = std::vector<std::string>;

  Status Connect();
  Result<Answer> Run(const std::string& script, const TagDefinition& tag, Answer arguments);

  const Options options_;
  RedisConnection connection_;
  StoreLink link_;
  uint64_t connections_ = 0;  // number of connections made
};

}  // namespace firn
