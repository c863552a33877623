#include "registry/hint.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "registry/records.h"

namespace firn {
namespace {

constexpr std::array<std::string_view, 5> kKeys = {"machineId", "worker", "rack", "cluster",
                                                   "layout"};
constexpr size_t kLayoutBytesMax = 255;

bool ReadNumber(std::string_view text, uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value < 65536;
}

bool IsPrintable(std::string_view text) {
  for (const char c : text) {
    if (c < 0x20 || c == 0x7f) return false;
  }
  return true;
}

}  // namespace

std::string FormatHint(const Hint& hint) {
  std::string text =
      "# Firn: which machine id to try first. Holds no permission; safe to copy or delete.\n";
  const auto line = [&text](size_t key, const std::string& value) {
    text.append(kKeys[key]).append(1, '=').append(value).append(1, '\n');
  };
  line(0, std::to_string(hint.machine));
  line(1, std::to_string(hint.slot.worker));
  line(2, std::to_string(hint.slot.rack));
  line(3, hint.uuid);
  line(4, hint.layout);
  return text;
}

Result<Hint> ParseHint(std::string_view text) {
  if (text.size() > StateFolder::kHintBytesMax) return Corrupt("the hint file is too long");
  std::array<std::string_view, kKeys.size()> values;
  std::array<bool, kKeys.size()> seen{};
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line.front() == '#') continue;
    const size_t equals = line.find('=');
    size_t key = 0;
    while (key < kKeys.size() && line.substr(0, equals) != kKeys[key]) ++key;
    if (equals == std::string_view::npos || key == kKeys.size() || seen[key]) {
      return Corrupt("the hint file has a line that does not belong");
    }
    seen[key] = true;
    values[key] = line.substr(equals + 1);
  }
  Hint hint;
  hint.uuid = values[3];
  hint.layout = values[4];
  const bool good =
      ReadNumber(values[0], hint.machine) && ReadNumber(values[1], hint.slot.worker) &&
      ReadNumber(values[2], hint.slot.rack) && IsUuid(hint.uuid) && !hint.layout.empty() &&
      hint.layout.size() <= kLayoutBytesMax && IsPrintable(hint.layout);
  if (!good) return Corrupt("the hint file holds something absurd, or not everything");
  return hint;
}

}  // namespace firn
