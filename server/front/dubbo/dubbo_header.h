#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace firn::front {

// The 16 bytes before each message of the Dubbo protocol, in both directions:
//
//     0xda 0xbb   flags   status   request id (8 bytes)   length of the body (4 bytes)
struct DubboHeader {
  static constexpr size_t kBytes = 16;
  static constexpr uint8_t kRequest = 0x80, kTwoWay = 0x40, kEvent = 0x20, kSerialization = 0x1f;
  static constexpr uint8_t kHessian2 = 2;

  uint8_t flags = 0;  // the lowest five bits are the serialization
  uint8_t status = 0;
  uint64_t id = 0;
  uint32_t body_bytes = 0;

  bool is_request() const { return (flags & kRequest) != 0; }
  bool is_two_way() const { return (flags & kTwoWay) != 0; }
  bool is_event() const { return (flags & kEvent) != 0; }
  uint8_t serialization() const { return flags & kSerialization; }

  // `bytes` has kBytes, and the first two are valid.
  static DubboHeader Read(std::string_view bytes);
  std::array<char, kBytes> Write() const;

  friend bool operator==(const DubboHeader&, const DubboHeader&) = default;
};

// The status of a response. Dubbo's consumers retry on another server, except for kOk.
enum class DubboStatus : uint8_t {
  kOk = 20,
  kBadRequest = 40,
  kServerError = 80,
  kServerBusy = 100,  // in Dubbo: the thread pool is exhausted
};

}  // namespace firn::front
