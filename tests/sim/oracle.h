#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "common/base/units.h"
#include "common/sequence/sequencer.h"

namespace firn {

// Knows every (machine id, tick, sequence number) that was ever issued, by any process, and throws
// a Violation when one is issued twice or a tick is issued under two claims.
//
// A claim's positions must rise; so the ticks of a claim lie between its first and its last, and
// the spans of two claims of one machine id must not touch.
class IssueOracle {
 public:
  // `claim` numbers claims from one, over all processes.
  void Record(MachineId machine, int64_t claim, const Step& step);

  // Whether none of the machine id's ticks in [from, to) was ever issued.
  bool IsFree(MachineId machine, Tick from, Tick to) const;

  // The highest tick issued under a machine id; the smallest possible one if there was none.
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
