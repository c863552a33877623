#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "common/base/units.h"

namespace firn {

// The turns of a lease's renewals. Detects a second process that renews the same lease because the
// program was copied with its memory. A value.
//
// A program has one renewal in flight at a time, and each one names the turn that was answered
// last. A renewal that was sent twice may arrive after its successors; such a duplicate proves
// nothing.
//
// After a crash, the process that resumes a lease does not know its last turn, so it accepts any
// turn once. A request with an earlier clock was sent before the accepted one. A request that was
// sent before the crash may be a late duplicate, so the program has to repeat it.
//
// An earlier turn is remembered as long as the clock of a request with that turn can pass the
// server's check; other requests are refused before they are judged. A program sends all requests
// with a turn before the first one with the next turn, so the clock of that one is not below
// theirs.
class LeaseTurns {
 public:
  enum class Kind {
    kNext,      // follows the last accepted turn
    kRepeated,  // is the last accepted turn: its answer was lost
    kOutdated,  // is an earlier one, delivered late
    kEarly,     // cannot be judged: it may be an earlier one
    kCopied,    // otherwise: two processes renew the lease
  };

  // Classifies a request's turn. `clock` is the request's clock.
  Kind Judge(const std::string& turn, const std::string& acknowledged, WallMs clock) const;
  // Records a turn that Judge classified as kNext. `clock` is the request's clock.
  void Accept(std::string turn, WallMs clock);
  // Forgets the turns whose requests all have a clock before `oldest`.
  void Forget(WallMs oldest);
  size_t remembered() const { return earlier_.size(); }

  // The last accepted turn; empty before the first one.
  const std::string& last() const { return last_; }
  bool any() const { return !last_.empty(); }
  WallMs last_clock() const { return last_clock_; }
  bool unknown() const { return unknown_; }

  // Returns the turns of a lease that an earlier process granted. `last` is its last turn and
  // `clock` the clock of that; if the turn is unknown, `last` is empty and `clock` is this
  // process's.
  static LeaseTurns Resumed(std::string last, WallMs clock);

 private:
  std::string last_;
  WallMs last_clock_;
  bool unknown_ = false;  // whether the last turn is unknown
  // Requests with an earlier clock may be late duplicates. The clock of the last turn before the
  // resumption or of the first one after it, or this process's clock.
  WallMs resumed_at_;
  struct Earlier {
    std::string turn;
    WallMs clock;  // of the next turn, or its own if that is later
  };
  std::deque<Earlier> earlier_;
};

}  // namespace firn
