#pragma once

namespace firn {

// Returns a small number that belongs to the calling thread until it ends, so that a thread finds
// its place in a table without a lock. A thread that gets the number of an earlier thread sees all
// writes of that thread. Negative if there are more than kThreadIndexMax threads, or this one is
// about to end.
inline constexpr int kThreadIndexMax = 128;

// Internal: no number assigned yet. The word needs no construction, so reading it takes one
// load.
inline constexpr int kThreadIndexUnset = -2;
extern constinit thread_local int thread_index_word;
int TakeThreadIndex();

inline int ThreadIndex() {
  const int index = thread_index_word;
  return index != kThreadIndexUnset ? index : TakeThreadIndex();
}

}  // namespace firn
