#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "server/issue/range.h"

namespace firn {

// What a tag's ledger tells the tag's store, beside where the next range has to begin.
struct LedgerWord {
  std::string cluster{};            // whose tag it is, by uuid
  std::optional<int64_t> picked{};  // the store's own ranges end here: it was away since, and above
                                    // this the ledger has picked; empty: they end where it begins
};

// Picks a tag's next range: a database, memory, or a user's own class. It determines where numbers
// come from, never whether they may be used: the tag's ledger decides that, so a store that goes
// back in time wastes numbers and repeats none.
//
// Every call comes from one thread, the store's own, and may block it up to the store's own
// time-outs; it must end. Connections are opened when needed and reopened after a failure; no
// request is sent twice.
class RangeStore {
 public:
  virtual ~RangeStore() = default;

  // As it stands in tag definitions.
  virtual std::string_view name() const = 0;

  // Said before each Check and Advance, of their tag. Most stores need not know it.
  virtual void Listen(const LedgerWord&) {}

  // Whether it takes tags whose ledger picks ranges while the store is away (when_store_is_away =
  // ledger). Such a store keeps, with the tag's counter and in the same write, which cluster's it
  // is, and gives ranges of it to no other: the ledger knows of no one else's numbers.
  virtual bool permits_stand_in() const { return false; }

  // Of the last call, which failed: whether the store could not be reached, or has not answered.
  // What it has refused, for whatever reason, is not that.
  virtual bool away() const { return false; }

  // Whether the store can serve the tag: it has the tag, or can add it, and its numbers fit.
  // kInvalid, kNotFound, kDenied: what an operator must correct; kUnavailable: not known now.
  virtual Status Check(const TagDefinition& tag) = 0;

  // Returns the next range: begin >= at_least, at most `size` numbers and at least one. A store
  // that did not lose data has returned no part of it before. Durable when it returns.
  //
  // `at_least` is the tag's ledger (or its start): a store whose own counter is lower has gone back
  // in time or does not know the tag yet, and must skip the difference.
  //
  // An error returns no range. The counter may still have moved; such a range is lost and never
  // requested again. kUnavailable: the store is unreachable; kUnknown: its effect is unknown.
  // kExhausted: at the end of 63 bits, or of what the store can count. kInvalid, kNotFound,
  // kCorrupt, kDenied: an operator must act.
  virtual Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) = 0;
};

}  // namespace firn
