#include "registry/state/hint.h"

#include <charconv>

#include "common/base/properties.h"
#include "common/base/utf8.h"
#include "registry/cluster/records.h"

namespace firn {
namespace {

constexpr char kFormat[] = "format";
constexpr char kMachine[] = "machineId";
constexpr char kWorker[] = "worker";
constexpr char kRack[] = "rack";
constexpr char kCluster[] = "cluster";
constexpr char kLayout[] = "layout";
constexpr size_t kLayoutBytesMax = 255;
constexpr uint32_t kNumberMax = 65535;

bool ReadNumber(const std::string* text, uint32_t& value) {
  if (text == nullptr) return false;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  return error == std::errc() && stop == end && value <= kNumberMax;
}

Status CheckFormat(const Properties& read) {
  uint32_t format = 0;
  const bool told = ReadNumber(read.Find(kFormat), format);
  if (told && format == kHintFormat) return {};
  if (told && format > kHintFormat) {
    return Invalid(
        "a newer Firn has used this state folder: install it again, or give this one a "
        "folder of its own");
  }
  return Invalid(
      "this state folder is one of Firn 0.1, whose state nobody reads any more: give "
      "this one a folder of its own");
}

}  // namespace

std::string FormatHint(const Hint& hint) {
  Properties properties;
  const auto set = [&properties](const char* key, std::string value) {
    if (!properties.Set(key, std::move(value)).ok()) Die("a hint that is not text");
  };
  set(kFormat, std::to_string(kHintFormat));
  set(kMachine, std::to_string(hint.machine));
  set(kWorker, std::to_string(hint.slot.worker));
  set(kRack, std::to_string(hint.slot.rack));
  set(kCluster, hint.uuid);
  set(kLayout, hint.layout);
  return "# Firn: which machine id to try first. Holds no permission; safe to copy or delete.\n" +
         properties.ToText();
}

Result<Hint> ParseHint(std::string_view text) {
  if (text.size() > StateFolder::kHintBytesMax) return Corrupt("the hint file is too long");
  const Result<Properties> read = Properties::Parse(text);
  if (!read.ok()) return Corrupt("the hint file: " + read.status().message());
  if (!read->duplicates().empty()) return Corrupt("the hint file has a key twice");
  // Only what is a hint for sure can be one of another format.
  if (read->Find(kMachine) == nullptr || read->Find(kCluster) == nullptr) {
    return Corrupt("the hint file lacks a key");
  }
  FIRN_TRY(CheckFormat(*read));
  Hint hint;
  const std::string* const uuid = read->Find(kCluster);
  const std::string* const layout = read->Find(kLayout);
  const bool good = ReadNumber(read->Find(kMachine), hint.machine) &&
                    ReadNumber(read->Find(kWorker), hint.slot.worker) &&
                    ReadNumber(read->Find(kRack), hint.slot.rack) && uuid != nullptr &&
                    IsUuid(*uuid) && layout != nullptr && !layout->empty() &&
                    layout->size() <= kLayoutBytesMax && IsPrintableUtf8(*layout);
  if (!good) return Corrupt("the hint file holds something absurd, or not everything");
  hint.uuid = *uuid;
  hint.layout = *layout;
  return hint;
}

}  // namespace firn
