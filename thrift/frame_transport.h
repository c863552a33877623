#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include <thrift/transport/TTransportException.h>
#include <thrift/transport/TVirtualTransport.h>

namespace firn {

// A Thrift transport that reads one frame in memory and appends writes to an `Out`: a string, or
// any type with Append(bytes, size). Reading beyond the frame throws. Final and inline, so that the
// templated protocols access memory without function calls. Used by one thread at a time.
template <typename Out>
class FrameTransport final
    : public apache::thrift::transport::TVirtualTransport<FrameTransport<Out>> {
 public:
  // `frame` must stay valid until it has been read, and `out` until everything is written.
  void ReadFrom(std::string_view frame) {
    at_ = reinterpret_cast<const uint8_t*>(frame.data());
    end_ = at_ + frame.size();
    // Thrift checks a container's declared size against these sizes before it allocates memory.
    this->knownMessageSize_ = this->remainingMessageSize_ = static_cast<long>(frame.size());
  }
  void WriteTo(Out& out) { out_ = &out; }

  bool at_end() const { return at_ == end_; }

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

  void write(const uint8_t* bytes, uint32_t size) {
    if constexpr (requires { out_->Append(bytes, size); }) {
      out_->Append(bytes, size);
    } else {
      out_->append(reinterpret_cast<const char*>(bytes), size);
    }
  }

  bool isOpen() const override { return true; }

 private:
  uint32_t left() const { return static_cast<uint32_t>(end_ - at_); }

  [[noreturn]] static void ThrowShort() {
    using apache::thrift::transport::TTransportException;
    throw TTransportException(TTransportException::END_OF_FILE, "the frame ends too early");
  }

  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  Out* out_ = nullptr;
};

}  // namespace firn
