#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "common/base/fork.h"
#include "common/base/units.h"
#include "common/id/claim.h"

namespace firn {

// Where the sequence of a new tick begins. After a tick that ran out it is always 0, so that the
// layout's ceiling is reached.
enum class SequenceStart : uint8_t {
  kZero,    // a quiet server's ids are then all multiples of ids_per_tick: lopsided shards
  kRandom,  // anywhere in the lower half, drawn per tick
  kCarry,   // where the last tick stopped; at 0 again when that was past half
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
    kLayoutEnds,  // `tick` is more than the layout's time field holds
    kClosed,
  };
  Kind kind = Kind::kClosed;
  Tick tick;
  uint64_t first = 0;
  uint64_t count = 0;
};

// The (tick, sequence) step of one claim: every pair at most once, and rising.
//
// 1. The state is the next free position, one word: tick and sequence side by side, so that a
//    sequence that runs out carries into the tick by itself, and that tick is remembered.
// 2. An id clock beyond that position's tick moves it to a start in the clock's tick; one at or
//    before it changes nothing ("beyond" is <, never !=). A tick whose sequence has not begun has
//    must wait for the clock; otherwise some thread has seen the clock there.
// 3. A computed position is issued only if the whole tick lies before the claim's end and
//    within the layout; both are checked after computing, every time. If not, nothing changes.
// 4. Closing swaps 0 into the word. A thread that had read the old word fails and finds it closed.
// 5. A forked child finds 0 there, too.
//
// Thread-safe. One object belongs to one claim, and no claim to two.
class Sequencer {
 public:
  virtual ~Sequencer() = default;

  // Takes up to `want` numbers of one tick; `now` is the id clock's.
  virtual Step Take(Tick now, uint64_t want) = 0;

  // The fast path for one number: returns its position, or kNone with nothing changed.
  virtual uint64_t TakeOne(Tick now) = 0;
  static constexpr uint64_t kNone = ~uint64_t{0};

  // Nothing is taken after it has returned. Returns the last tick from which anything was taken, or
  // the one before the claim's first. One thread at a time, also with Last; repeatable.
  virtual Tick Close() = 0;
  virtual Tick Last() const = 0;
  virtual bool closed() const = 0;
};

struct SequencerOptions {
  SequencerKind kind = SequencerKind::kAtomic;
  SequenceStart start = SequenceStart::kRandom;
};

// `cell` must hold 0, outlive the sequencer and have no other user. `seed` varies random starts.
std::unique_ptr<Sequencer> MakeSequencer(const SequencerOptions& options,
                                         std::shared_ptr<const Claim> claim, ForkCells::Cell& cell,
                                         uint64_t seed);

}  // namespace firn
