#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace firn::front {

// The other side of a connection, byte for byte: what a well-behaved client would never do.
// Everything has a limit of some seconds; a test fails instead of hanging.
class RawPeer {
 public:
  // `from`: the address it calls from, one of loopback's.
  explicit RawPeer(uint16_t port, const char* from = "127.0.0.1");
  ~RawPeer();
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  bool connected() const { return fd_ >= 0; }

  // False when the server has closed or reset the connection.
  bool Send(std::string_view bytes);

  // Exactly `n` bytes, or fewer when the server closes or says nothing for too long.
  std::string Receive(size_t n);
  // Everything until the server closes.
  std::string ReceiveAll();

  // The server closes the connection, within some seconds.
  bool SeesClose();

  // Says that nothing more will come.
  void FinishSending();

  // A small receive buffer, so that unread answers pile up at the server soon.
  void ReadSlowly();

 private:
  int fd_;
};

}  // namespace firn::front
