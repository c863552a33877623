#pragma once

#include <cstddef>
#include <string_view>

#include "server/front/net/buffers.h"

namespace firn::front {

class Connection;

// A connection's bytes: plain TCP, or TLS over it. At most one read and one write are in progress
// at a time. Owned by the connection, which ends it only after both answers; used by one IO
// thread.
//
// A buffer that is being read into or written from belongs to the wire: Read and Write take it, so
// no other code can touch, move or free its bytes before the answer.
class Wire {
 public:
  virtual ~Wire() = default;

  // Before anything else, once.
  virtual void Bind(Connection& connection) = 0;

  // Takes `input` and reads what there is, or comes, into its room, which is not empty. OnRead
  // gives it back.
  virtual void Read(InBuffer&& input) = 0;

  // Sends at once what can be sent without waiting, while no Write is under way. Returns how many
  // bytes went; 0 also when the wire is broken: then Write says so. What did not go must be the
  // beginning of the next Write: some of it may be encrypted already.
  virtual size_t WriteNow(std::string_view bytes) = 0;

  // Takes the content of `bytes`, which is not empty, and sends all of it. Leaves `bytes` empty,
  // with the memory of an earlier write, so that two buffers alternate without new allocations.
  virtual void Write(OutBuffer& bytes) = 0;

  // Tells the peer that nothing more will come, after what was written.
  virtual void FinishSending() = 0;

  // Ends reads and writes that are under way; each is still answered, with a failure.
  virtual void Close() = 0;

  // True until encryption has been agreed upon, where there is any.
  virtual bool Opening() const { return false; }

  // Bytes of memory of all its buffers.
  virtual size_t memory() const = 0;
  // Frees the memory of those that hold nothing, also, a moment later, of one that a read waits to
  // fill. For a connection that is idle.
  virtual void Relax() = 0;
};

}  // namespace firn::front
