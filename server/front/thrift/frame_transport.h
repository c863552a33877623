#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include <thrift/transport/TVirtualTransport.h>

#include "server/front/net/buffers.h"

namespace firn::front {

// Thrift's view of one frame: reads end with the frame, writes go to an OutBuffer. Final and
// inline, so that the templated protocols read and write memory without a call.
// Used by one IO thread.
class FrameTransport final : public apache::thrift::transport::TVirtualTransport<FrameTransport> {
 public:
  // Both outlive the frame's processing.
  void Begin(std::string_view frame, OutBuffer& out) {
    at_ = reinterpret_cast<const uint8_t*>(frame.data());
    end_ = at_ + frame.size();
    out_ = &out;
    // Containers claim a size before they are read: no more than the frame holds.
    knownMessageSize_ = remainingMessageSize_ = static_cast<long>(frame.size());
  }

  uint32_t read(uint8_t* into, uint32_t size) { return readAll(into, size); }

  uint32_t readAll(uint8_t* into, uint32_t size) {
    if (left() < size) ThrowShort();
    std::memcpy(into, at_, size);
    at_ += size;
    return size;
  }

  const uint8_t* borrow(uint8_t*, uint32_t* size) {
    if (left() < *size) return nullptr;
    *size = left();
    return at_;
  }

  void consume(uint32_t size) {
    if (left() < size) ThrowShort();
    at_ += size;
  }

  void write(const uint8_t* bytes, uint32_t size) { out_->Append(bytes, size); }

  bool isOpen() const override { return true; }

 private:
  uint32_t left() const { return static_cast<uint32_t>(end_ - at_); }
  [[noreturn]] static void ThrowShort();

  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  OutBuffer* out_ = nullptr;
};

}  // namespace firn::front
