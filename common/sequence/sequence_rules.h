#pragma once

#include <algorithm>
#include <cstdint>

#include "common/id/claim.h"
#include "common/sequence/sequencer.h"

namespace firn {

// The parameters of one claim's sequence. A value.
struct SequenceShape {
  SequenceShape(const Layout& layout, SequenceStart sequence_start, uint64_t random_seed)
      : bits(layout.sequence().width),
        start(sequence_start),
        seed(random_seed),
        last_tick(layout.last_tick()) {}

  // A position is tick and sequence in one word. It has at most 62 bits: an id's 64 bits also
  // contain the sign and at least one bit of the machine id.
  uint64_t Position(Tick tick, uint64_t sequence) const {
    return static_cast<uint64_t>(tick.count()) << bits | sequence;
  }
  Tick TickOf(uint64_t position) const { return Tick(static_cast<int64_t>(position >> bits)); }
  uint64_t SequenceOf(uint64_t position) const { return position & (ids_per_tick() - 1); }
  uint64_t ids_per_tick() const { return uint64_t{1} << bits; }

  int bits;
  SequenceStart start;
  uint64_t seed;
  Tick last_tick;
};

// Rules 1 to 3 of sequencer.h as pure functions, for all kinds of sequencers. The sequencers are
// templates with this as a parameter, so that tests can run the same suite with wrong rules.
struct SequenceRules {
  // Returns the outcome of taking up to `want` numbers at `now` if `next` is the first free
  // position. Sets `*after` to the next free position, or leaves it unchanged if no number is
  // taken.
  static Step Take(const SequenceShape& shape, const Claim& claim, uint64_t next, Tick now,
                   uint64_t want, uint64_t* after) {
    const Tick tick = std::max(shape.TickOf(next), now);
    uint64_t first = shape.SequenceOf(next);
    if (tick > shape.last_tick) return {Step::Kind::kLayoutEnds, tick};
    if (tick >= claim.end_tick()) return {Step::Kind::kClaimEnds, tick};
    // A position in the middle of a tick proves that the id clock has reached the tick, even if
    // this caller's reading is older.
    if (tick > now && first == 0) return {Step::Kind::kLater, tick};
    if (shape.TickOf(next) < now) first = StartOf(shape, now, first);
    const uint64_t count = std::min(want, shape.ids_per_tick() - first);
    *after = shape.Position(tick, first) + count;
    return {Step::Kind::kTaken, tick, first, count};
  }

  // Returns the last tick of which a caller has a number.
  static Tick Last(const SequenceShape& shape, uint64_t next) {
    return shape.SequenceOf(next) == 0 ? shape.TickOf(next) - 1 : shape.TickOf(next);
  }

 private:
  // `free`: the next sequence number of the previous tick; 0 if that tick was used up.
  static uint64_t StartOf(const SequenceShape& shape, Tick tick, uint64_t free) {
    const uint64_t half = shape.ids_per_tick() / 2;
    if (free == 0 || half == 0) return 0;
    if (shape.start == SequenceStart::kZero) return 0;
    if (shape.start == SequenceStart::kCarry) return free <= half ? free : 0;
    return Scatter(shape.seed + static_cast<uint64_t>(tick.count())) & (half - 1);
  }

  // The mixing function of SplitMix64. Neighbouring ticks get unrelated starts, without any state.
  static uint64_t Scatter(uint64_t z) {
    z *= 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
};

}  // namespace firn
