#pragma once

#include <cstddef>
#include <string_view>

#include "server/front/net/buffers.h"

namespace firn::front {

class Connection;

// The transport of a connection: plain TCP, or TLS over it. At most one read and one write are in
// progress at a time. The connection owns it, and destroys it only after both have been answered.
// Used by one IO thread.
//
// A buffer of a read or write in progress belongs to the wire: Read and Write take it, so no other
// code can touch, move or free its bytes before the answer.
class Wire {
 public:
  virtual ~Wire() = default;

  // Called once, before all other functions.
  virtual void Bind(Connection& connection) = 0;

  // Takes `input` and reads what has arrived, or arrives next, into its room, which is not empty.
  // OnRead returns it.
  virtual void Read(InBuffer&& input) = 0;

  // Sends what can be sent without waiting, while no Write is in progress. Returns the number of
  // bytes; 0 also if the wire is broken, which Write then reports. The next Write must begin with
  // the bytes that were not sent: some of them may be encrypted already.
  virtual size_t WriteNow(std::string_view bytes) = 0;

  // Takes the content of `bytes`, which is not empty, and sends all of it. Leaves `bytes` empty,
  // with the memory of an earlier write, so that two buffers alternate without new allocations.
  virtual void Write(OutBuffer& bytes) = 0;

  // Shuts down the sending side after everything that was written.
  virtual void FinishSending() = 0;

  // Ends the reads and writes in progress; each is still answered, with a failure.
  virtual void Close() = 0;

  // True until the TLS handshake is complete; always false without TLS.
  virtual bool Opening() const { return false; }

  virtual size_t memory() const = 0;
  // Frees the memory of empty buffers. If a read waits to fill one, that one is freed a moment
  // later. For idle connections.
  virtual void Relax() = 0;
};

}  // namespace firn::front
