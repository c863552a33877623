#include "server/front/thrift/id_list.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace firn::front {
namespace {

// Maps positive and negative numbers near 0 to small unsigned numbers, which need fewer bytes.
uint64_t ZigZag(int64_t id) {
  return (static_cast<uint64_t>(id) << 1) ^ static_cast<uint64_t>(id >> 63);
}

// Spreads the low 56 bits over eight bytes, seven in each: first halves of 28 bits, then quarters,
// then eighths.
uint64_t Spread(uint64_t value) {
  value = (value & 0x00FFFFFFF0000000) << 4 | (value & 0x000000000FFFFFFF);
  value = (value & 0x0FFFC0000FFFC000) << 2 | (value & 0x00003FFF00003FFF);
  return (value & 0x3F803F803F803F80) << 1 | (value & 0x007F007F007F007F);
}

// A number as a varint: seven bits in each byte, the top bit set in all but the last.
struct Varint {
  static constexpr size_t kSizeMax = 10;

  explicit Varint(uint64_t value)
      : size((static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7),
        low(Spread(value) | 0x8080808080808080),
        high(static_cast<uint16_t>((value >> 56 & 0x7F) | 0x80 | value >> 63 << 8)) {
    if (size <= sizeof low) {
      low &= ~(uint64_t{0x80} << 8 * (size - 1));
    } else {
      high &= static_cast<uint16_t>(~(0x80 << 8 * (size - 1 - sizeof low)));
    }
  }

  // Writes all ten bytes, of which `size` count: the next number overwrites the others.
  char* Put(char* at) const {
    std::memcpy(at, &low, sizeof low);
    std::memcpy(at + sizeof low, &high, sizeof high);
    return at + size;
  }

  size_t size;
  uint64_t low;
  uint16_t high;
};

// How many numbers of a run, from `id` on, have varints that differ only in the first byte.
int64_t Alike(int64_t id, int64_t stride) {
  constexpr int64_t kFirstByteMax = 0x7F;
  if (id < 0 || stride > kFirstByteMax / 2) return 1;
  const auto first_byte = static_cast<int64_t>(ZigZag(id) & kFirstByteMax);
  return (kFirstByteMax - first_byte) / (2 * stride) + 1;
}

char* PutRun(const IdRun& run, char* at) {
  for (int64_t i = 0; i < run.count;) {
    Varint varint(ZigZag(run.At(i)));
    const int64_t end = std::min(run.count, i + Alike(run.At(i), run.stride));
    for (; i < end; ++i) {
      at = varint.Put(at);
      varint.low += 2 * static_cast<uint64_t>(run.stride);
    }
  }
  return at;
}

}  // namespace

static_assert(std::endian::native == std::endian::little);

void AppendBigEndian(const Runs& runs, OutBuffer& out) {
  char* at = out.Room(static_cast<size_t>(runs.count()) * sizeof(int64_t));
  runs.ForEach([&at](int64_t id) {
    const uint64_t wire = __builtin_bswap64(static_cast<uint64_t>(id));
    std::memcpy(at, &wire, sizeof wire);
    at += sizeof wire;
  });
  out.Filled(static_cast<size_t>(runs.count()) * sizeof(int64_t));
}

void AppendVarints(const Runs& runs, OutBuffer& out) {
  char* const begin = out.Room(static_cast<size_t>(runs.count()) * Varint::kSizeMax);
  char* at = begin;
  for (const IdRun& run : runs.runs()) at = PutRun(run, at);
  out.Filled(static_cast<size_t>(at - begin));
}

}  // namespace firn::front
