#include "common/base/properties.h"

#include <cstdint>

#include "common/base/quote.h"
#include "common/base/utf8.h"

namespace firn {
namespace {

void AppendEscapedUnit(std::string& out, uint32_t unit) {
  constexpr char kHex[] = "0123456789ABCDEF";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[(unit >> shift) & 0xf];
}

void AppendEscapedPoint(std::string& out, uint32_t point) {
  if (point < 0x10000) return AppendEscapedUnit(out, point);
  AppendEscapedUnit(out, 0xD800 + ((point - 0x10000) >> 10));
  AppendEscapedUnit(out, 0xDC00 + ((point - 0x10000) & 0x3ff));
}

// Blanks separate keys from values, so a key's are all escaped; of a value only the first would be
// lost.
void AppendEscaped(std::string& out, std::string_view text, bool is_key) {
  bool first = true;
  while (!text.empty()) {
    const uint32_t point = TakeCodePoint(text).value();
    const bool blank = point == ' ' && (is_key || first);
    first = false;
    if (point == '\t') {
      out += "\\t";
    } else if (point == '\n') {
      out += "\\n";
    } else if (point == '\r') {
      out += "\\r";
    } else if (point == '\f') {
      out += "\\f";
    } else if (point < 0x20 || point > 0x7e) {
      AppendEscapedPoint(out, point);
    } else {
      const char c = static_cast<char>(point);
      if (blank || std::string_view("\\=:#!").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
}

Status CheckText(std::string_view text) {
  if (!IsUtf8(text)) return Invalid(Quoted(text) + " is not UTF-8");
  if (text.find('\0') != text.npos) return Invalid(Quoted(text) + " has a NUL");
  return {};
}

}  // namespace

const std::string* Properties::Find(std::string_view key) const {
  const auto place = places_.find(key);
  return place == places_.end() ? nullptr : &entries_[place->second].value;
}

Properties::Entry* Properties::FindEntry(std::string_view key) {
  const auto place = places_.find(key);
  return place == places_.end() ? nullptr : &entries_[place->second];
}

Status Properties::Set(std::string key, std::string value) {
  FIRN_TRY(CheckText(key));
  FIRN_TRY(CheckText(value));
  if (Entry* entry = FindEntry(key)) {
    entry->value = std::move(value);
    return {};
  }
  if (entries_.size() >= kEntriesMax) {
    return Invalid("more than " + std::to_string(kEntriesMax) + " entries");
  }
  places_.emplace(key, entries_.size());
  entries_.push_back({std::move(key), std::move(value), 0});
  return {};
}

std::string Properties::ToText() const {
  std::string text;
  for (const Entry& entry : entries_) {
    AppendEscaped(text, entry.key, true);
    text += '=';
    AppendEscaped(text, entry.value, false);
    text += '\n';
  }
  return text;
}

}  // namespace firn
