#pragma once

namespace firn {

// A small number of the calling thread, its own until it ends, so that a thread finds its place in
// a table without a lock. Whoever gets a number that another thread had sees all that the other one
// did. Negative: there are more than kThreadIndexMax threads, or this one is about to end; then
// there is no place.
inline constexpr int kThreadIndexMax = 128;

// Of the implementation: not yet asked for. The word needs no construction, so reading it is one
// load.
inline constexpr int kThreadIndexUnset = -2;
extern constinit thread_local int thread_index_word;
int TakeThreadIndex();

inline int ThreadIndex() {
  const int index = thread_index_word;
  return index != kThreadIndexUnset ? index : TakeThreadIndex();
}

}  // namespace firn
