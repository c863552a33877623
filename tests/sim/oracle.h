#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "common/base/units.h"
#include "common/sequence/sequencer.h"

namespace firn {

// Records every (machine id, tick, sequence number) that any process issues. Throws a Violation if
// one is issued twice, or a tick is issued under two claims.
//
// A claim's positions must rise. The ticks of a claim therefore lie between its first and its last,
// and the spans of two claims of a machine id must not overlap.
class IssueOracle {
 public:
  // Records issued ids. `claim`: number of the claim, from 1, over all processes.
  void Record(MachineId machine, int64_t claim, const Step& step);

  // Returns whether no tick of the machine id in [from, to) was ever issued.
  bool IsFree(MachineId machine, Tick from, Tick to) const;

  // Returns the highest tick issued under a machine id, or the smallest possible tick if none was
  // issued.
  Tick Highest(MachineId machine) const;

  uint64_t ids() const { return ids_; }

 private:
  struct Span {
    int64_t claim = 0;
    Tick last;
    uint64_t next_sequence = 0;
  };
  using Spans = std::map<int64_t, Span>;  // by the first tick

  struct Current {
    int64_t claim = 0;
    Spans::iterator span;
    int64_t end = 0;  // the first tick of the next span, or far away
  };

  void Begin(MachineId machine, int64_t claim, const Step& step);

  std::unordered_map<uint32_t, Spans> machines_;
  std::unordered_map<uint32_t, Current> current_;
  uint64_t ids_ = 0;
};

}  // namespace firn
