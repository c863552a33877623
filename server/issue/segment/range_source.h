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

// Where a segment strategy gets its ranges. A range may be used at once and completely, and belongs
// to this caller only: in a cluster, the tag's ledger covers it already.
//
// Thread-safe. Nothing blocks: answers come later, on a thread of the source, and never inside the
// requesting call. Every call is answered exactly once, within the source's own time limits, unless
// the source is destroyed first: then some answers are dropped. Callers have at most one Take of a
// tag in progress.
class RangeSource {
 public:
  using TakeDone = std::function<void(Result<Range>)>;
  using GiveBackDone = std::function<void(Status)>;

  virtual ~RangeSource() = default;

  // Returns a range of at least one number and at most `size`. A failure returns none, and numbers
  // that were reserved for it are lost: kUnavailable, kUnknown: try later; kConflict: other servers
  // were faster, so callers are refused as overloaded; kExhausted: there are no more numbers; the
  // others: an operator must act.
  virtual void Take(const TagDefinition& tag, int64_t size, TakeDone done) = 0;

  // Gives back the unused tail of the range taken last; ok only if it ends exactly at the tag's
  // next number, so that it will be issued again without a gap. After a failure the tail is
  // wasted, which is harmless.
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
