#include "server/front/thrift/known_calls.h"

#include <cstring>

namespace firn::front {
namespace {

constexpr size_t kVersionBytes = 4;  // in a binary message; the length of the name and the name
                                     // follow
constexpr size_t kCompactHead = 2;   // protocol and version; the sequence id follows
constexpr size_t kCompactMax = 5;    // maximum size of a 32-bit number
constexpr size_t kIdBytesMax = 10;   // maximum size of a 64-bit number
constexpr char kEndOfStruct = 0;

uint32_t LengthAt(const char* frame) {
  uint32_t length = 0;
  std::memcpy(&length, frame, sizeof length);
  return __builtin_bswap32(length);
}

// The content of the frame at the front of `in`; Behind returns what follows the frame.
std::string_view FrameAt(std::string_view in) {
  return in.substr(kLengthBytes, LengthAt(in.data()));
}
std::string_view Behind(std::string_view in) {
  return in.substr(kLengthBytes + LengthAt(in.data()));
}

}  // namespace

// Copies whole chunks, at most kChunk - 1 bytes too many: both buffers have room for that, and a
// fixed size needs no call of memcpy.
char* KnownCalls::Copy(const char* from, size_t size, char* to) {
  for (size_t at = 0; at < size; at += KnownCall::kChunk) {
    std::memcpy(to + at, from + at, KnownCall::kChunk);
  }
  return to + size;
}

bool KnownCall::Message::Set(std::string_view before, std::string_view behind) {
  if (before.size() + behind.size() > kBytesMax) return false;
  std::memcpy(bytes.data(), before.data(), before.size());
  std::memcpy(bytes.data() + before.size(), behind.data(), behind.size());
  head = static_cast<uint8_t>(before.size());
  size = static_cast<uint8_t>(before.size() + behind.size());
  return true;
}

// Hashes the eight bytes before the last one, which are the end of the tag's name.
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
  // A zigzag varint: the lowest bit is the sign, and ids are never negative.
  uint64_t rest = static_cast<uint64_t>(id) << 1;
  size_t size = 0;
  for (; rest >= 0x80; rest >>= 7) to[size++] = static_cast<char>(rest | 0x80);
  to[size++] = static_cast<char>(rest);
  return size;
}

bool KnownCalls::IsLike(const KnownCall& known, std::string_view call) const {
  const KnownCall::Message& like = known.call_;
  if (call.size() <= like.size) return false;
  const size_t sequence = call.size() - like.size;
  const bool equal = std::memcmp(call.data(), like.bytes.data(), like.head) == 0 &&
                     std::memcmp(call.data() + like.head + sequence, like.bytes.data() + like.head,
                                 size_t{like.size} - like.head) == 0;
  return equal && SequenceSize(call.substr(like.head)) == sequence;
}

const KnownCall* KnownCalls::Find(std::string_view call) const {
  const KnownCall& known = calls_[PlaceOf(call)];
  return known.tag_ != nullptr && IsLike(known, call) ? &known : nullptr;
}

size_t KnownCalls::CountLike(const KnownCall& known, std::string_view in, size_t most) const {
  size_t count = 1;
  for (in = Behind(in); count < most; ++count, in = Behind(in)) {
    if (in.size() < kLengthBytes || in.size() - kLengthBytes < LengthAt(in.data())) break;
    if (!IsLike(known, FrameAt(in))) break;
  }
  return count;
}

size_t KnownCalls::SizeOf(std::string_view in, size_t frames) {
  std::string_view rest = in;
  for (; frames > 0; --frames) rest = Behind(rest);
  return in.size() - rest.size();
}

size_t KnownCalls::Answer(const KnownCall& known, std::string_view in, const IdRun& run,
                          OutBuffer& out) const {
  std::string_view rest = in;
  char* end = out.Room(static_cast<size_t>(run.count) * kAnswerMax);
  const char* const begin = end;
  for (int64_t i = 0; i < run.count; ++i, rest = Behind(rest)) {
    end = Write(known, FrameAt(rest), run.At(i), end);
  }
  out.Filled(static_cast<size_t>(end - begin));
  return in.size() - rest.size();
}

char* KnownCalls::Write(const KnownCall& known, std::string_view call, int64_t id,
                        char* const to) const {
  const KnownCall::Message& like = known.answer_;
  char* end = to + kLengthBytes;
  end = Copy(like.bytes.data(), like.head, end);
  const size_t sequence = call.size() - known.call_.size;
  std::memcpy(end, call.data() + known.call_.head, sequence);
  end = Copy(like.bytes.data() + like.head, size_t{like.size} - like.head, end + sequence);
  end += WriteId(id, end);
  *end++ = kEndOfStruct;
  const auto size = static_cast<uint32_t>(end - to - static_cast<ptrdiff_t>(kLengthBytes));
  const uint32_t length = __builtin_bswap32(size);
  std::memcpy(to, &length, sizeof length);
  return end;
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
