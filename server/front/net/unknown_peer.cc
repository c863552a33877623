#include "server/front/net/unknown_peer.h"

#include <cstdint>
#include <string>

namespace firn::front {
namespace {

constexpr std::string_view kWantsFrames =
    "this server speaks Thrift in frames: give the client a TFramedTransport";
constexpr size_t kNameBytesMax = 100;

bool IsUnframedBinary(std::string_view first) { return first.starts_with("\x80\x01"); }
bool IsUnframedCompact(std::string_view first) { return first.starts_with("\x82\x21"); }
bool IsRedis(std::string_view first) { return first.starts_with('*'); }

void AppendNumber(uint32_t value, std::string& out) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

uint32_t NumberAt(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

// The length of the method's name, the name, and the sequence id, which some clients compare with
// their request; eight zero bytes if they have not arrived completely.
std::string NameAndSequence(std::string_view first) {
  constexpr size_t kAt = 4;
  const size_t size = first.size() < kAt + 4 ? kNameBytesMax : NumberAt(first, kAt);
  if (size >= kNameBytesMax || first.size() < kAt + 4 + size + 4) return std::string(8, '\0');
  return std::string(first.substr(kAt, 4 + size + 4));
}

// A TApplicationException of type "internal error".
std::string UnframedRefusal(std::string_view first) {
  std::string out("\x80\x01\x00\x03", 4);
  out += NameAndSequence(first);
  out += std::string_view("\x0b\x00\x01", 3);
  AppendNumber(kWantsFrames.size(), out);
  out += kWantsFrames;
  out += std::string_view("\x08\x00\x02\x00\x00\x00\x06\x00", 8);
  return out;
}

}  // namespace

std::string_view DescribeUnknownPeer(std::string_view first) {
  if (IsUnframedBinary(first)) return "binary Thrift without frames";
  if (IsUnframedCompact(first)) return "compact Thrift without frames";
  if (first.starts_with("\x16\x03")) return "TLS, which this port does not use";
  if (IsRedis(first)) return "Redis, which is not served on this port";
  if (first.starts_with("\xda\xbb")) return "Dubbo, which is not served on this port";
  if (first.size() > 4 && first.starts_with(std::string_view("\0\0\0", 3))) {
    return "Thrift's old binary form, without a version";
  }
  return "an unknown protocol";
}

void RefuseUnknownPeer(std::string_view first, OutBuffer& out) {
  if (IsRedis(first)) out.Append("-ERR Redis is not served on this port\r\n");
  if (IsUnframedBinary(first)) out.Append(UnframedRefusal(first));
}

}  // namespace firn::front
