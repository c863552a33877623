#pragma once

#include <deque>
#include <string>

namespace firn {

// The turns of a lease's renewals: recognises a second process that renews the same lease, because
// the program was copied with its memory. A value.
//
// A program has one renewal under way, so each names the turn that was answered last. A renewal
// that was sent twice may be delivered late, after its successors: it says nothing.
class LeaseTurns {
 public:
  enum class Kind {
    kNext,      // follows the last accepted turn
    kRepeated,  // is the last accepted turn: its answer was lost
    kOutdated,  // is an earlier one, delivered late
    kCopied,    // none of these: two processes renew
  };

  static constexpr size_t kRemembered = 16;

  Kind Judge(const std::string& turn, const std::string& acknowledged) const;
  // The turn must be kNext.
  void Accept(std::string turn);

  // The last accepted turn; empty: none was.
  const std::string& last() const { return last_; }
  bool any() const { return !last_.empty(); }

 private:
  std::string last_;
  std::deque<std::string> earlier_;
};

}  // namespace firn
