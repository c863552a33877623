#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/tag/tag_definition.h"
#include "server/issue/range.h"

namespace firn {

// How a tag's ledger stands in for its store, on this server.
struct StoodIn {
  std::optional<WallMs> since{};  // the store is away since; empty: the last range is the store's
  int64_t ranges = 0;             // ever
  int64_t numbers = 0;
};

// Where a segment strategy gets its ranges: what it is given may be used at once, all of it, by
// nobody else. In a cluster that means that the tag's ledger covers it already.
//
// Thread-safe. Nothing blocks: answers come later, on a thread of the source's, and never inside
// the call that asked. Every call is answered exactly once, within the source's own time limits,
// unless the source goes first: then some answers are dropped. Callers keep one Take of a tag in
// flight.
class RangeSource {
 public:
  using TakeDone = std::function<void(Result<Range>)>;
  using GiveBackDone = std::function<void(Status)>;

  virtual ~RangeSource() = default;

  // A range of at least one number and at most `size`. A failure gives none, and what may have
  // been set aside for it is lost: kUnavailable, kUnknown: try later; kConflict: other servers
  // were faster, so callers are refused as overloaded; kExhausted: there are no
  // more numbers; the others: somebody has to look.
  virtual void Take(const TagDefinition& tag, int64_t size, TakeDone done) = 0;

  // Gives back the unused tail of what was taken last; ok only when it ends exactly where the
  // tag's numbers have got to, so that it will be given out again with nothing in between. A
  // failure means that the tail is wasted, which harms nobody.
  virtual void GiveBack(const TagDefinition& tag, Range tail, GiveBackDone done) = 0;

  // The tag's ledger went back, or its numbers came from another source until now: nothing that
  // was set aside for it before is answered after this has returned, and nothing else before the
  // ledger could be read. On the thread that answers come on. Most set nothing aside.
  virtual void Distrust(const std::string& tag) { static_cast<void>(tag); }

  // Whether it is quick enough, and its ranges rise over the whole cluster, so that a tag may take
  // every number from it (buffer = none).
  virtual bool permits_no_buffer() const = 0;

  // Whether the tag's ledger may pick ranges while the store is away (when_store_is_away = ledger).
  virtual bool permits_stand_in() const { return false; }
  // What it has picked so far in the place of the tag's store.
  virtual StoodIn stood_in(const std::string&) const { return {}; }

  // Numbers of the tag's that were set aside for this process and are lost before anybody got them:
  // those of failed Takes, and of whatever lies below. For a metric.
  virtual int64_t wasted(const std::string&) const { return 0; }
};

}  // namespace firn
