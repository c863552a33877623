#include "server/front/dubbo/dubbo_header.h"

namespace firn::front {
namespace {

uint64_t ReadNumber(std::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

void WriteNumber(uint64_t number, size_t bytes, char* to) {
  for (size_t i = 0; i < bytes; ++i) to[i] = static_cast<char>(number >> 8 * (bytes - 1 - i));
}

}  // namespace

DubboHeader DubboHeader::Read(std::string_view bytes) {
  return {.flags = static_cast<uint8_t>(bytes[2]),
          .status = static_cast<uint8_t>(bytes[3]),
          .id = ReadNumber(bytes.substr(4, 8)),
          .body_bytes = static_cast<uint32_t>(ReadNumber(bytes.substr(12, 4)))};
}

std::array<char, DubboHeader::kBytes> DubboHeader::Write() const {
  std::array<char, kBytes> bytes{'\xda', '\xbb', static_cast<char>(flags),
                                 static_cast<char>(status)};
  WriteNumber(id, 8, bytes.data() + 4);
  WriteNumber(body_bytes, 4, bytes.data() + 12);
  return bytes;
}

}  // namespace firn::front
