#pragma once

#include <cstdint>

#include "common/base/units.h"

namespace firn {

// For how long a server has seen one state of a node, or its absence, without a break in one
// session. A value.
//
// Versions recur in a registry that has lost data. Its sessions end, so what was seen in an earlier
// session counts for nothing.
class Sighting {
 public:
  struct State {
    int64_t version = -1;  // -1: the node does not exist
    int64_t created_zxid = 0;

    friend bool operator==(const State&, const State&) = default;
  };

  // Records the answer to a read of that session. `now` is a time after the answer's arrival: a
  // change that the reader sees was applied before it. After a gap of more than `gap_max` the
  // counting begins again, since the state may have changed twice meanwhile.
  void Saw(State state, int64_t session, BootMs now, Milliseconds gap_max) {
    if (state != state_ || session != session_ || now - last_ > gap_max) since_ = now;
    state_ = state;
    session_ = session;
    last_ = now;
  }

  // Whether the latest state has been seen for that long, in that session.
  bool HasLasted(Milliseconds length, int64_t session, BootMs now) const {
    return session_ != 0 && session == session_ && now - since_ >= length;
  }

  const State& state() const { return state_; }

 private:
  State state_{};
  int64_t session_ = 0;  // 0: nothing was seen
  BootMs since_;
  BootMs last_;
};

}  // namespace firn
