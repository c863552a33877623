#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "server/issue/range.h"

namespace firn {

// Information from a tag's ledger for the tag's store, besides the least begin of the next range.
struct LedgerWord {
  std::string cluster{};  // uuid of the tag's cluster
  // The end of the ranges that the store picked. The ledger picked the numbers above it while the
  // store was unreachable. Empty: the store picked all ranges so far.
  std::optional<int64_t> picked{};
};

// Picks a tag's next range: a database, memory, or a user's own class. The tag's ledger decides
// whether a range may be used. So a store that has lost data wastes numbers, but cannot cause
// duplicates.
//
// All calls are made on the store's own thread. They may block, but must end within the store's own
// timeouts. Connections are opened when needed and reopened after a failure; no request is sent
// twice.
class RangeStore {
 public:
  virtual ~RangeStore() = default;

  // The store's name in tag definitions.
  virtual std::string_view name() const = 0;

  // Called before each Check and Advance, with information about their tag. Most stores ignore it.
  virtual void Listen(const LedgerWord&) {}

  // Returns whether the store accepts tags whose ledger picks ranges while the store is unreachable
  // (when_store_is_away = ledger). Such a store records the cluster that owns a tag's counter in
  // the same write as the counter. It refuses ranges to other clusters, because the ledger does not
  // know their numbers.
  virtual bool permits_stand_in() const { return false; }

  // After a failed call: returns whether the store was unreachable or did not answer. False if the
  // store refused the call, for any reason.
  virtual bool away() const { return false; }

  // Checks that the store has the tag or can add it, and that the tag's numbers fit. kInvalid,
  // kNotFound, kDenied: an operator must correct the store or the tag; kUnavailable: the store
  // cannot be checked now.
  virtual Status Check(const TagDefinition& tag) = 0;

  // Returns the next range: begin >= at_least, 1 to `size` numbers. A store that has not lost data
  // never returns a number twice. The new counter must be durable before this returns.
  //
  // `at_least` is the tag's ledger (or its start). If the store's counter is lower, the store has
  // lost data or does not know the tag yet, and must skip the difference.
  //
  // After an error, the counter may have been raised; the range is then lost. kUnavailable: the
  // store is unreachable; kUnknown: the effect is unknown; kExhausted: the counter has reached 63
  // bits, or the store's own maximum; kInvalid, kNotFound, kCorrupt, kDenied: an operator must act.
  virtual Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) = 0;
};

}  // namespace firn
