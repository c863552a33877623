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

// Ranges that a tag's ledger picked on this server while the tag's store was unreachable.
struct StoodIn {
  std::optional<WallMs>
      since{};         // when the store's outage began; empty: the store picked the last range
  int64_t ranges = 0;  // ranges picked by the ledger since the start
  int64_t numbers = 0;
};

// The source of a segment strategy's ranges. A returned range belongs to this caller only and may
// be used at once: in a cluster, the tag's ledger already covers it.
//
// Thread-safe and non-blocking: an answer is delivered by a thread of the source, or inside the
// requesting call. Every call is answered exactly once, within the source's time limits; a source
// that is destroyed may drop answers. A caller must have at most one Take of a tag in progress.
class RangeSource {
 public:
  using TakeDone = std::function<void(Result<Range>)>;
  using GiveBackDone = std::function<void(Status)>;

  virtual ~RangeSource() = default;

  // Returns a range of 1 to `size` numbers. A failure returns none, and numbers reserved for it are
  // lost. kUnavailable, kUnknown: retry later; kConflict: other servers were faster, so callers are
  // refused as overloaded; kExhausted: there are no more numbers; other codes: an operator must
  // act.
  virtual void Take(const TagDefinition& tag, int64_t size, TakeDone done) = 0;

  // Gives back the unused tail of the range taken last. Succeeds only if the tail ends exactly at
  // the tag's next number: it will then be issued without a gap. After a failure the tail is
  // wasted, which is harmless.
  virtual void GiveBack(const TagDefinition& tag, Range tail, GiveBackDone done) = 0;

  // Called when the tag's ledger fell, or when the tag's numbers came from another source until
  // now. After the return, no Take returns numbers that were reserved before, and no Take succeeds
  // until the ledger has been read. Called on the thread that delivers answers. Most sources
  // reserve no numbers.
  virtual void Distrust(const std::string& tag) { static_cast<void>(tag); }

  // Returns whether a tag may use this source without a buffer (buffer = none): the source is fast
  // enough, and its ranges rise across the whole cluster.
  virtual bool permits_no_buffer() const = 0;

  // Returns whether the tag's ledger may pick ranges while the store is unreachable
  // (when_store_is_away = ledger).
  virtual bool permits_stand_in() const { return false; }
  // Returns how the ledger has stood in for the tag's store so far.
  virtual StoodIn stood_in(const std::string&) const { return {}; }

  // Returns how many of the tag's numbers were lost before a call got them, because a Take failed
  // here or in a source below this one. For a metric.
  virtual int64_t wasted(const std::string&) const { return 0; }
};

}  // namespace firn
