#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "server/issue/range.h"

namespace firn {

// What a tag's store learns of the tag's ledger, besides where the next range must begin.
struct LedgerWord {
  std::string cluster{};  // uuid of the tag's cluster
  // End of the store's own ranges: the ledger picked the numbers above it while the store was
  // unreachable. Empty: the store picked all ranges so far.
  std::optional<int64_t> picked{};
};

// Picks a tag's next range: a database, memory, or a user's own class. It decides where numbers
// come from, never whether they may be used. The tag's ledger decides that, so a store that lost
// data wastes numbers and repeats none.
//
// All calls come from the store's own thread. They may block up to the store's own timeouts, and
// must end. Connections are opened when needed and reopened after a failure; no request is sent
// twice.
class RangeStore {
 public:
  virtual ~RangeStore() = default;

  // The name in tag definitions.
  virtual std::string_view name() const = 0;

  // Called before each Check and Advance, for their tag. Most stores do not need it.
  virtual void Listen(const LedgerWord&) {}

  // Whether the store accepts tags whose ledger picks ranges while it is unreachable
  // (when_store_is_away = ledger). Such a store records, in the same write as the tag's counter,
  // which cluster owns the counter, and refuses ranges of it to other clusters: the ledger does not
  // know their numbers.
  virtual bool permits_stand_in() const { return false; }

  // After a failed call: whether the store was unreachable or did not answer. False if it refused
  // the call, for any reason.
  virtual bool away() const { return false; }

  // Whether the store can serve the tag: it has the tag or can add it, and its numbers fit.
  // kInvalid, kNotFound, kDenied: an operator must correct it; kUnavailable: not known now.
  virtual Status Check(const TagDefinition& tag) = 0;

  // Returns the next range: begin >= at_least, 1 to `size` numbers. A store that did not lose data
  // has never returned any of them before. Durable when it returns.
  //
  // `at_least` is the tag's ledger (or its start). A store whose own counter is lower has lost data
  // or does not know the tag yet, and must skip the difference.
  //
  // An error returns no range. The counter may have moved; such a range is lost and never requested
  // again. kUnavailable: the store is unreachable; kUnknown: the effect is unknown; kExhausted: the
  // end of 63 bits, or of what the store can count; kInvalid, kNotFound, kCorrupt, kDenied: an
  // operator must act.
  virtual Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) = 0;
};

}  // namespace firn
