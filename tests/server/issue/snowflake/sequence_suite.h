#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/id/claim.h"
#include "common/sequence/sequencer.h"

namespace firn {

// Creates the sequencer under test. `cell` holds 0 and outlives it.
using SequencerMaker = std::function<std::unique_ptr<Sequencer>(
    std::shared_ptr<const Claim> claim, SequenceStart start, ForkCells::Cell& cell)>;

// One statement about every sequencer, and its proof: empty if the statement holds, otherwise the
// observed fault. Not a gtest case, because the same statements must fail for incorrect sequencers.
struct SequenceCheck {
  const char* name;
  std::function<std::optional<std::string>(const SequencerMaker&)> run;
};

// The contract of sequencers (common/sequence/sequencer.h), driven by one thread.
const std::vector<SequenceCheck>& SequenceChecks();

// Returns the faults that the checks find, each as "<name>: <fault>".
std::vector<std::string> Violations(const SequencerMaker& maker);

}  // namespace firn
