#pragma once

#include <cstdint>
#include <memory>

#include "common/sequence/owned_term.h"
#include "server/issue/segment/segment.h"

namespace firn {

// The numbers of one tag that its owner has in memory: a segment that issues only in the terms in
// which this server owns the tag's partition.
//
//  1. A number is issued only if the term that was loaded before it was taken is valid afterwards.
//     So it was taken within the term, however long the thread slept in between.
//  2. Numbers are requested only in a term, and used only in the term in which they were requested.
//     Otherwise a range that was requested in an earlier term could lie below the numbers that
//     another owner has issued since. HandOver, which must be called at the end of each term and
//     before the next one begins, removes what has arrived, and what is in flight is discarded.
//  3. A range is to last for a minute, whatever the tag's hold_minutes is: without the registry an
//     owner continues for seconds only, and what is in memory is skipped if it is killed.
class OwnedNumbers final : public Segment {
 public:
  // `owned` must outlive it.
  static Result<std::shared_ptr<OwnedNumbers>> Make(const TagDefinition& tag, RangedParts parts,
                                                    const OwnedTerm& owned);

  bool TryOne(Method, int64_t* id) override {
    const uint64_t term = owned_.Load();
    if (term == 0 || !numbers().TakeOne(id)) return false;
    return IsOurs(term, 1);
  }
  bool TryRun(Method, int64_t want, IdRun* run) override;
  void Adjust(const TagDefinition& tag) override { Segment::Adjust(Held(tag)); }
  RangeCursor* cursor() override { return nullptr; }

  // Whether this server owns the tag's partition now.
  bool owns() const { return owned_.Holds(owned_.Load(), parts_.clock.Boot()); }

  // Takes up to `count` numbers of one range. An empty range: there are none yet, or this server
  // does not own the partition any more. An error says why none arrive.
  Result<Range> Take(int64_t count);

  // Counts numbers that were taken and will not be issued.
  void Waste(int64_t count);

 private:
  OwnedNumbers(const TagDefinition& tag, RangedParts parts, std::unique_ptr<ForkCells> cells,
               ForkCells::Cell& numbers, const OwnedTerm& owned)
      : Segment(Held(tag), std::move(parts), std::move(cells), numbers), owned_(owned) {}

  // Rule 3.
  static TagDefinition Held(TagDefinition tag) {
    tag.hold_minutes = 1;
    return tag;
  }
  // Whether numbers that were taken after `term` was loaded may be issued; else they are wasted.
  bool IsOurs(uint64_t term, int64_t count) {
    if (owned_.Holds(term, parts_.clock.Boot())) [[likely]]
      return true;
    Waste(count);
    return false;
  }

  // Rule 2.
  int64_t AskLocked(BootMs now) override {
    return owned_.Load() == 0 ? 0 : Segment::AskLocked(now);
  }
  bool TickLocked(BootMs now) override { return owned_.Load() != 0 && Segment::TickLocked(now); }

  const OwnedTerm& owned_;
};

}  // namespace firn
