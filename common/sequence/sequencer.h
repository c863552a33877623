#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "common/base/fork.h"
#include "common/base/units.h"
#include "common/id/claim.h"

namespace firn {

// The start of the sequence in a new tick. Always 0 after a tick that was used up, so that the
// layout's maximum rate is possible.
enum class SequenceStart : uint8_t {
  kZero,    // under low load, all ids are multiples of ids_per_tick, which makes shards uneven
  kRandom,  // anywhere in the lower half, drawn per tick
  kCarry,   // the next number of the last tick; 0 if that is in the upper half
};
// Parses "zero", "random" or "carry"; returns nullopt for any other word.
std::optional<SequenceStart> ParseSequenceStart(std::string_view name);

enum class SequencerKind : uint8_t { kAtomic, kMutex, kSpin };
// Parses "atomic", "mutex" or "spin"; returns nullopt for any other word.
std::optional<SequencerKind> ParseSequencerKind(std::string_view name);
std::string_view SequencerKindName(SequencerKind kind);

// Outcome of an attempt to take sequence numbers. Only kTaken changes the state.
struct Step {
  enum class Kind : uint8_t {
    kTaken,       // the caller has `count` numbers of `tick`, from `first`
    kLater,       // the sequence is used up until the id clock reaches `tick`
    kClaimEnds,   // `tick` is not granted (yet)
    kLayoutEnds,  // `tick` does not fit the layout's time field
    kClosed,
  };
  Kind kind = Kind::kClosed;
  Tick tick;
  uint64_t first = 0;
  uint64_t count = 0;
};

// Hands out the (tick, sequence) pairs of one claim: each pair at most once, in rising order.
//
// 1. The state is the next free position, which contains tick and sequence in one word. When a
//    sequence is used up, the addition carries into the tick, and the position remains in that
//    tick.
// 2. If the id clock is later than the position's tick, the position moves to a start in the
//    clock's tick. Otherwise the clock does not move the position (the comparison is <, never !=).
//    If no caller has a number of the position's tick, the call must wait until the clock reaches
//    that tick; otherwise another thread has already read that tick from the clock.
// 3. A position is issued only if its whole tick is before the claim's end and within the layout.
//    Each attempt checks both after it has computed the position. If a check fails, the state does
//    not change.
// 4. Closing exchanges the word for 0. If a thread had read the old word, its update fails, and it
//    finds the sequencer closed.
// 5. A forked child reads 0, too.
//
// Thread-safe. One object per claim.
class Sequencer {
 public:
  virtual ~Sequencer() = default;

  // Takes up to `want` numbers of one tick; `now` is the id clock's tick.
  virtual Step Take(Tick now, uint64_t want) = 0;

  // The fast path for one number. Returns its position, or kNone without an effect.
  virtual uint64_t TakeOne(Tick now) = 0;
  static constexpr uint64_t kNone = ~uint64_t{0};

  // Once this returns, nothing takes a number. Returns the last tick with a taken number, or the
  // tick before the claim's first. May be called again. Only one thread at a time may call Close
  // and Last.
  virtual Tick Close() = 0;
  virtual Tick Last() const = 0;
  virtual bool closed() const = 0;
};

struct SequencerOptions {
  SequencerKind kind = SequencerKind::kAtomic;
  SequenceStart start = SequenceStart::kRandom;
};

// `cell` must contain 0, outlive the sequencer and have no other user. `seed` is for random starts.
std::unique_ptr<Sequencer> MakeSequencer(const SequencerOptions& options,
                                         std::shared_ptr<const Claim> claim, ForkCells::Cell& cell,
                                         uint64_t seed);

}  // namespace firn
