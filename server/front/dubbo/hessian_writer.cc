#include "server/front/dubbo/hessian_writer.h"

#include <cstring>

#include "common/base/utf8.h"

namespace firn::front {
namespace {

// Maximum UTF-16 units in a piece of a long string, as in Dubbo.
constexpr size_t kPieceUnits = 0x8000;

// Removes the first character of `text`, which is not empty.
uint32_t TakeCharacter(std::string_view& text) {
  if (const auto character = TakeCodePoint(text)) return *character;
  text.remove_prefix(1);
  return '?';
}

// Appends a UTF-16 unit beyond ASCII.
void AppendUnit(uint32_t unit, std::string& out) {
  const auto add = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (unit < 0x800) {
    add(0xc0 | unit >> 6);
  } else {
    add(0xe0 | unit >> 12);
    add(0x80 | (unit >> 6 & 0x3f));
  }
  add(0x80 | (unit & 0x3f));
}

}  // namespace

void HessianWriter::Bytes(uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out_.push_back(static_cast<char>(value >> shift));
  }
}

void HessianWriter::Int(int32_t value) {
  if (value >= -16 && value <= 47) return Bytes(static_cast<uint64_t>(0x90 + value), 1);
  out_.push_back('I');
  Bytes(static_cast<uint32_t>(value), 4);
}

void HessianWriter::Long(int64_t value) {
  if (value >= -8 && value <= 15) return Bytes(static_cast<uint64_t>(0xe0 + value), 1);
  // Appended in one step: a list may have 100,000 longs.
  char coded[9] = {'L'};
  const uint64_t wire = __builtin_bswap64(static_cast<uint64_t>(value));
  std::memcpy(coded + 1, &wire, sizeof wire);
  out_.append(coded, sizeof coded);
}

void HessianWriter::Text(std::string_view text) {
  do {
    const size_t at = out_.size();
    out_.append(3, '\0');  // the code and the length, which is not known yet
    size_t units = 0;
    while (!text.empty() && units + 1 < kPieceUnits) {
      const uint32_t next = TakeCharacter(text);
      ++units;
      if (next < 0x80) {
        out_.push_back(static_cast<char>(next));
      } else if (next < 0x10000) {
        AppendUnit(next, out_);
      } else {
        ++units;
        AppendUnit(0xd800 + ((next - 0x10000) >> 10), out_);
        AppendUnit(0xdc00 + ((next - 0x10000) & 0x3ff), out_);
      }
    }
    if (text.empty() && units < 32) {
      out_.replace(at, 3, 1, static_cast<char>(units));
      return;
    }
    out_[at] = text.empty() ? 'S' : 'R';
    out_[at + 1] = static_cast<char>(units >> 8);
    out_[at + 2] = static_cast<char>(units);
  } while (!text.empty());
}

void HessianWriter::Date(int64_t millis) {
  out_.push_back('\x4a');
  Bytes(static_cast<uint64_t>(millis), 8);
}

void HessianWriter::List(size_t items) {
  if (items < 8) return Bytes(0x78 + items, 1);
  out_.push_back('\x58');
  Int(static_cast<int32_t>(items));
}

void HessianWriter::ListOf(std::string_view type, size_t items) {
  if (items < 8) {
    Bytes(0x70 + items, 1);
    return Text(type);
  }
  out_.push_back('V');
  Text(type);
  Int(static_cast<int32_t>(items));
}

void HessianWriter::Class(std::string_view name, std::initializer_list<std::string_view> fields) {
  out_.push_back('C');
  Text(name);
  Int(static_cast<int32_t>(fields.size()));
  for (const std::string_view field : fields) Text(field);
}

}  // namespace firn::front
