#include "server/front/thrift/known_calls.h"

#include <cstring>

namespace firn::front {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr size_t kVersionBytes = 4;  // of a binary message; then its name's length, and its name
constexpr size_t kCompactHead = 2;   // protocol and version; then the sequence id
constexpr size_t kCompactMax = 5;    // bytes of a 32-bit number
constexpr size_t kIdBytesMax = 10;   // of a 64-bit number
constexpr char kEndOfStruct = 0;

}  // namespace

bool KnownCall::Message::Set(std::string_view before, std::string_view behind) {
  if (before.size() + behind.size() > kBytesMax) return false;
  std::memcpy(bytes.data(), before.data(), before.size());
  std::memcpy(bytes.data() + before.size(), behind.data(), behind.size());
  head = static_cast<uint8_t>(before.size());
  size = static_cast<uint8_t>(before.size() + behind.size());
  return true;
}

// By the bytes before the last one, with which the tag's name ends.
size_t KnownCalls::PlaceOf(std::string_view call) {
  uint64_t end = 0;
  if (call.size() <= sizeof end) return 0;
  std::memcpy(&end, call.data() + call.size() - 1 - sizeof end, sizeof end);
  constexpr uint64_t kSpread = 0x9e37'79b9'7f4a'7c15;  // 2^64 by the golden ratio
  return (end * kSpread) >> (64 - kPlaceBits);
}

size_t KnownCalls::SequenceSize(std::string_view from) const {
  if (coding_ == ThriftCoding::kBinary) return from.size() < 4 ? 0 : 4;
  for (size_t i = 0; i < from.size() && i < kCompactMax; ++i) {
    if (static_cast<uint8_t>(from[i]) < 0x80) return i + 1;
  }
  return 0;
}

size_t KnownCalls::SequenceAt(std::string_view message) const {
  if (coding_ == ThriftCoding::kCompact) return kCompactHead;
  uint32_t name = 0;
  if (message.size() < kVersionBytes + sizeof name) return message.size();
  std::memcpy(&name, message.data() + kVersionBytes, sizeof name);
  return kVersionBytes + sizeof name + __builtin_bswap32(name);
}

size_t KnownCalls::WriteId(int64_t id, char* to) const {
  if (coding_ == ThriftCoding::kBinary) {
    const uint64_t wire = __builtin_bswap64(static_cast<uint64_t>(id));
    std::memcpy(to, &wire, sizeof wire);
    return sizeof wire;
  }
  // Seven bits a byte, and the sign, which no id has, as the lowest bit.
  uint64_t rest = static_cast<uint64_t>(id) << 1;
  size_t size = 0;
  for (; rest >= 0x80; rest >>= 7) to[size++] = static_cast<char>(rest | 0x80);
  to[size++] = static_cast<char>(rest);
  return size;
}

const KnownCall* KnownCalls::Find(std::string_view call) const {
  const KnownCall& known = calls_[PlaceOf(call)];
  const KnownCall::Message& like = known.call_;
  if (known.tag_ == nullptr || call.size() <= like.size) return nullptr;
  const size_t sequence = call.size() - like.size;
  const bool equal = std::memcmp(call.data(), like.bytes.data(), like.head) == 0 &&
                     std::memcmp(call.data() + like.head + sequence, like.bytes.data() + like.head,
                                 size_t{like.size} - like.head) == 0;
  return equal && SequenceSize(call.substr(like.head)) == sequence ? &known : nullptr;
}

void KnownCalls::Answer(const KnownCall& known, std::string_view call, int64_t id,
                        OutBuffer& out) const {
  const KnownCall::Message& like = known.answer_;
  std::array<char, kLengthBytes + KnownCall::kBytesMax + kCompactMax + kIdBytesMax + 1> frame;
  char* end = frame.data() + kLengthBytes;
  const auto append = [&end](const char* bytes, size_t size) {
    std::memcpy(end, bytes, size);
    end += size;
  };
  append(like.bytes.data(), like.head);
  append(call.data() + known.call_.head, call.size() - known.call_.size);
  append(like.bytes.data() + like.head, size_t{like.size} - like.head);
  end += WriteId(id, end);
  *end++ = kEndOfStruct;
  const auto size = static_cast<size_t>(end - frame.data());
  const uint32_t length = __builtin_bswap32(static_cast<uint32_t>(size - kLengthBytes));
  std::memcpy(frame.data(), &length, sizeof length);
  out.Append(frame.data(), size);
}

void KnownCalls::Remember(std::string_view call, std::string_view answer, int64_t id,
                          const Tag& tag) {
  std::array<char, kIdBytesMax + 1> end;
  size_t end_size = WriteId(id, end.data());
  end[end_size++] = kEndOfStruct;
  if (!answer.ends_with(std::string_view(end.data(), end_size))) return;
  answer.remove_suffix(end_size);

  KnownCall known;
  const auto cut = [this](std::string_view message, KnownCall::Message& into) {
    const size_t at = SequenceAt(message);
    if (at >= message.size()) return false;
    const size_t size = SequenceSize(message.substr(at));
    return size != 0 && into.Set(message.substr(0, at), message.substr(at + size));
  };
  if (!cut(call, known.call_) || !cut(answer, known.answer_)) return;
  known.tag_ = &tag;
  calls_[PlaceOf(call)] = known;
}

}  // namespace firn::front
