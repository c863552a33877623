#pragma once

#include <cstdint>
#include <memory>

#include "common/sequence/owned_term.h"
#include "server/issue/segment/segment.h"

namespace firn {

// The numbers of one tag in its owner's memory: a segment that issues only during terms in which
// this server owns the tag's partition.
//
//  1. A thread loads the term, takes a number, and then checks that the term is still valid. So it
//     took the number within the term, even if it slept in between.
//  2. Numbers are requested only in a term, and used only in the same term. Otherwise a range
//     requested in an earlier term could lie below numbers that another owner has issued since.
//     HandOver must be called between the end of a term and the next term. It removes the numbers
//     in memory and discards those in flight.
//  3. A range should last for one minute, regardless of the tag's hold_minutes: without the
//     registry, an owner continues only for seconds, and the numbers in memory are lost if it is
//     killed.
class OwnedNumbers final : public Segment {
 public:
  // `owned` must outlive the object.
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

  // Returns whether this server owns the tag's partition now.
  bool owns() const { return owned_.Holds(owned_.Load(), parts_.clock.Boot()); }

  // Takes up to `count` numbers of one range. Returns an empty range if there are none yet, or if
  // this server no longer owns the partition. An error says why no numbers arrive.
  Result<Range> Take(int64_t count);

  // Counts numbers that Take returned and that will never be issued.
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
  // Returns whether numbers that this thread took after it loaded `term` may be issued. If not,
  // counts them as wasted.
  bool IsOurs(uint64_t term, int64_t count) {
    if (owned_.Holds(term, parts_.clock.Boot())) [[likely]]
      return true;
    Waste(count);
    return false;
  }

  // Rule 2.
  int64_t AskLocked() override {
    return owned_.Load() == 0 ? 0 : Segment::AskLocked();
  }
  bool TickLocked(BootMs now) override { return owned_.Load() != 0 && Segment::TickLocked(now); }

  const OwnedTerm& owned_;
};

}  // namespace firn
