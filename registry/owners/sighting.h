#pragma once

#include <cstdint>

#include "common/base/units.h"

namespace firn {

// The time for which one state of a node, or its absence, was seen without a break. A value.
//
// It counts in one session only: versions recur in a registry that has lost data, and its sessions
// end then.
class Sighting {
 public:
  struct State {
    int64_t version = -1;  // -1: the node does not exist
    int64_t created_zxid = 0;

    friend bool operator==(const State&, const State&) = default;
  };

  // Records the answer to a read in that session. `now` is at or after the answer's arrival. After
  // a gap of more than `gap_max` between two answers the time starts again, since the state may
  // have changed twice meanwhile.
  void Saw(State state, int64_t session, BootMs now, Milliseconds gap_max) {
    if (state != state_ || session != session_ || now - last_ > gap_max) since_ = now;
    state_ = state;
    session_ = session;
    last_ = now;
  }

  // Returns whether the latest state was seen for that long, in that session.
  bool HasLasted(Milliseconds length, int64_t session, BootMs now) const {
    return session_ != 0 && session == session_ && now - since_ >= length;
  }

  const State& state() const { return state_; }

 private:
  State state_{};
  int64_t session_ = 0;  // 0: nothing seen yet
  BootMs since_;
  BootMs last_;
};

}  // namespace firn
