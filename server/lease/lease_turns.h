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
// An earlier turn is remembered as long as a request with it can be accepted at all: requests whose
// clock differs too much from the server's are refused before they are judged. All requests with a
// turn are sent before the first one with its successor, whose clock is therefore not below theirs.
class LeaseTurns {
 public:
  enum class Kind {
    kNext,      // follows the last accepted turn
    kRepeated,  // is the last accepted turn: its answer was lost
    kOutdated,  // is an earlier one, delivered late
    kCopied,    // none of these: two processes renew
  };

  Kind Judge(const std::string& turn, const std::string& acknowledged) const;
  // The turn must be kNext; `clock` is that of its request.
  void Accept(std::string turn, WallMs clock);
  // Forgets the turns of which no request has a clock of `oldest` or later.
  void Forget(WallMs oldest);
  size_t remembered() const { return earlier_.size(); }

  // The last accepted turn; empty: none was.
  const std::string& last() const { return last_; }
  bool any() const { return !last_.empty(); }

 private:
  std::string last_;
  WallMs last_clock_;
  struct Earlier {
    std::string turn;
    WallMs clock;  // of its successor, or its own if that is later
  };
  std::deque<Earlier> earlier_;
};

}  // namespace firn
