#include "common/sequence/sequencer.h"

#include <utility>

#include "common/base/status.h"
#include "common/sequence/sequencer_kinds.h"

namespace firn {

std::optional<SequenceStart> ParseSequenceStart(std::string_view name) {
  if (name == "zero") return SequenceStart::kZero;
  if (name == "random") return SequenceStart::kRandom;
  if (name == "carry") return SequenceStart::kCarry;
  return std::nullopt;
}

std::optional<SequencerKind> ParseSequencerKind(std::string_view name) {
  if (name == "atomic") return SequencerKind::kAtomic;
  if (name == "mutex") return SequencerKind::kMutex;
  if (name == "spin") return SequencerKind::kSpin;
  return std::nullopt;
}

std::string_view SequencerKindName(SequencerKind kind) {
  switch (kind) {
    case SequencerKind::kAtomic:
      return "atomic";
    case SequencerKind::kMutex:
      return "mutex";
    case SequencerKind::kSpin:
      return "spin";
  }
  Die("no such sequencer");
}

std::unique_ptr<Sequencer> MakeSequencer(const SequencerOptions& options,
                                         std::shared_ptr<const Claim> claim, ForkCells::Cell& cell,
                                         uint64_t seed) {
  const SequenceShape shape(claim->layout(), options.start, seed);
  switch (options.kind) {
    case SequencerKind::kAtomic:
      return std::make_unique<AtomicSequencer<SequenceRules>>(std::move(claim), shape, cell);
    case SequencerKind::kMutex:
      return std::make_unique<LockedSequencer<SequenceRules, Mutex>>(std::move(claim), shape, cell);
    case SequencerKind::kSpin:
      return std::make_unique<LockedSequencer<SequenceRules, SpinLock>>(std::move(claim), shape,
                                                                        cell);
  }
  return nullptr;
}

}  // namespace firn
