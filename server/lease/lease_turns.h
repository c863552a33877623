#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "common/base/units.h"

namespace firn {

// The turns of a lease's renewals: recognises a second process that renews the same lease, because
// the program was copied with its memory. A value.
//
// A program has one renewal under way, so each names the turn that was answered last. A renewal
// that was sent twice may be delivered late, after its successors: it says nothing.
//
// A process that resumes a lease after a crash does not know its last turn: it accepts any turn
// once. A request with an earlier clock was sent before that one. One that was sent before the
// crash may be a late duplicate, so it has to be repeated.
//
// An earlier turn is remembered as long as a request with it can be accepted at all: requests whose
// clock differs too much from the server's are refused before they are judged. All requests with a
// turn are sent before the first one with its successor, whose clock is therefore not below theirs.
class LeaseTurns {
 public:
  enum class Kind {
    kNext,      // follows the last accepted turn
    kRepeated,  // is the last accepted turn: its answer was lost
    kOutdated,  // is an earlier one, delivered late
    kEarly,     // cannot be judged: it may be an earlier one
    kCopied,    // none of these: two processes renew
  };

  // `clock`: that of the request.
  Kind Judge(const std::string& turn, const std::string& acknowledged, WallMs clock) const;
  // The turn must be kNext; `clock` is that of its request.
  void Accept(std::string turn, WallMs clock);
  // Forgets the turns of which no request has a clock of `oldest` or later.
  void Forget(WallMs oldest);
  size_t remembered() const { return earlier_.size(); }

  // The last accepted turn; empty: none was.
  const std::string& last() const { return last_; }
  bool any() const { return !last_.empty(); }
  WallMs last_clock() const { return last_clock_; }
  bool unknown() const { return unknown_; }

  // The turns of a process that has ended, with the clock of the last one. `last` empty: it is not
  // known; then `clock` is that of this process.
  static LeaseTurns Resumed(std::string last, WallMs clock);

 private:
  std::string last_;
  WallMs last_clock_;
  bool unknown_ = false;  // the last one
  // Requests with an earlier clock may be late: that of the last turn before the resumption or of
  // the first after it, or this process's.
  WallMs resumed_at_;
  struct Earlier {
    std::string turn;
    WallMs clock;  // of its successor, or its own if that is later
  };
  std::deque<Earlier> earlier_;
};

}  // namespace firn
