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

// How a tag's ledger replaces its store on this server.
struct StoodIn {
  std::optional<WallMs> since{};  // when its outage began; empty: the last range is the store's
  int64_t ranges = 0;             // since the start
  int64_t numbers = 0;
};

// Where a segment strategy gets its ranges. A range may be used at once and completely, and belongs
// to this caller only: in a cluster, the tag's ledger already covers it.
//
// Thread-safe. Nothing blocks: answers come later, on a thread of the source, or inside the
// requesting call. Every call is answered exactly once, within the source's own time limits; a
// source that is destroyed may drop answers. Callers have at most one Take of a tag in progress.
class RangeSource {
 public:
  using TakeDone = std::function<void(Result<Range>)>;
  using GiveBackDone = std::function<void(Status)>;

  virtual ~RangeSource() = default;

  // Returns a range of at least one number and at most `size`. A failure returns none, and numbers
  // reserved for it are lost. kUnavailable, kUnknown: try later; kConflict: other servers were
  // faster, so callers are refused as overloaded; kExhausted: there are no more numbers; other
  // codes: an operator must act.
  virtual void Take(const TagDefinition& tag, int64_t size, TakeDone done) = 0;

  // Gives back the unused tail of the range taken last. Ok only if it ends exactly at the tag's
  // next number: the tail will then be issued without a gap. After a failure the tail is wasted,
  // which is harmless.
  virtual void GiveBack(const TagDefinition& tag, Range tail, GiveBackDone done) = 0;

  // Called when the tag's ledger fell, or its numbers came from another source until now. After it
  // has returned, numbers set aside before are never returned by a Take, and no Take succeeds
  // before the ledger was read. Called on the thread that delivers answers. Most sources set
  // nothing aside.
  virtual void Distrust(const std::string& tag) { static_cast<void>(tag); }

  // Whether a tag may take every number from this source (buffer = none): it is fast enough, and
  // its ranges rise over the whole cluster.
  virtual bool permits_no_buffer() const = 0;

  // Whether the tag's ledger may pick ranges while the store is unreachable (when_store_is_away =
  // ledger).
  virtual bool permits_stand_in() const { return false; }
  // The ranges picked so far in place of the tag's store.
  virtual StoodIn stood_in(const std::string&) const { return {}; }

  // Numbers of the tag that were set aside for this process and are lost before any call got them:
  // those of failed Takes, also of the sources below this one. For a metric.
  virtual int64_t wasted(const std::string&) const { return 0; }
};

}  // namespace firn
