#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "common/base/fork.h"
#include "common/base/units.h"
#include "common/id/claim.h"

namespace firn {

// Where the sequence of a new tick begins. Always 0 after a tick that was used up, so that the
// layout's maximum rate is reached.
enum class SequenceStart : uint8_t {
  kZero,    // ids of a quiet server are all multiples of ids_per_tick: uneven shards
  kRandom,  // anywhere in the lower half, drawn per tick
  kCarry,   // where the last tick stopped; 0 if that is in the upper half
};
// "zero", "random", "carry"; nullopt for any other word.
std::optional<SequenceStart> ParseSequenceStart(std::string_view name);

enum class SequencerKind : uint8_t { kAtomic, kMutex, kSpin };
// "atomic", "mutex", "spin"; nullopt for any other word.
std::optional<SequencerKind> ParseSequencerKind(std::string_view name);

// Outcome of an attempt to take sequence numbers. Only kTaken has changed anything.
struct Step {
  enum class Kind : uint8_t {
    kTaken,       // `count` numbers from `first`, of `tick`
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

// The (tick, sequence) pairs of one claim: each is taken at most once, in rising order.
//
// 1. The state is the next free position, one word of tick and sequence: a used-up sequence carries
//    into the tick by itself, and the position keeps that tick.
// 2. An id clock beyond that position's tick moves the position to a start in the clock's tick; one
//    at or before it changes nothing ("beyond" is <, never !=). A tick whose sequence has not begun
//    must wait for the clock; in any other tick some thread has already seen the clock there.
// 3. A computed position is issued only if the whole tick lies before the claim's end and within
//    the layout. Both are checked after computing, every time. If not, nothing changes.
// 4. Closing swaps 0 into the word. A thread that had read the old word fails and finds it closed.
// 5. A forked child finds 0 there, too.
//
// Thread-safe. One object per claim.
class Sequencer {
 public:
  virtual ~Sequencer() = default;

  // Takes up to `want` numbers of one tick; `now` is the id clock's tick.
  virtual Step Take(Tick now, uint64_t want) = 0;

  // The fast path for one number: returns its position, or kNone with nothing changed.
  virtual uint64_t TakeOne(Tick now) = 0;
  static constexpr uint64_t kNone = ~uint64_t{0};

  // After it has returned, nothing is taken. Returns the last tick from which a number was taken,
  // or the one before the claim's first. May be called again. Close and Last: one thread at a time.
  virtual Tick Close() = 0;
  virtual Tick Last() const = 0;
  virtual bool closed() const = 0;
};

struct SequencerOptions {
  SequencerKind kind = SequencerKind::kAtomic;
  SequenceStart start = SequenceStart::kRandom;
};

// `cell` must contain 0, outlive the sequencer and have no other user. `seed` varies random starts.
std::unique_ptr<Sequencer> MakeSequencer(const SequencerOptions& options,
                                         std::shared_ptr<const Claim> claim, ForkCells::Cell& cell,
                                         uint64_t seed);

}  // namespace firn
