#include "registry/state/hint.h"

#include <functional>
#include <map>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/utf8.h"
#include "common/tag/ini_line.h"
#include "registry/cluster/records.h"

namespace firn {
namespace {

constexpr char kFormatKey[] = "format";
constexpr char kMachine[] = "machineId";
constexpr char kWorker[] = "worker";
constexpr char kRack[] = "rack";
constexpr char kCluster[] = "cluster";
constexpr char kLayout[] = "layout";
constexpr char kEra[] = "era";
constexpr char kRootVersion[] = "rootVersion";
constexpr char kLast[] = "lastMs";
constexpr char kSlotClaim[] = "claim";
constexpr char kSlotVersion[] = "slotVersion";
constexpr char kSlotCreated[] = "slotCreated";
constexpr size_t kLayoutBytesMax = 255;
constexpr uint32_t kNumberMax = 65535;

using Settings = std::map<std::string, std::string, std::less<>>;

// The characters that must be escaped in such values of a Java properties file.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view("\\=:#!").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

Result<Settings> ReadSettings(std::string_view text) {
  Settings settings;
  while (!text.empty()) {
    const std::string_view line = TakeIniLine(text);
    const size_t equals = line.find('=');
    if (line.starts_with('#') || equals == line.npos) continue;
    if (!settings.emplace(line.substr(0, equals), Unescaped(line.substr(equals + 1))).second) {
      return Corrupt("the hint file has a key twice");
    }
  }
  return settings;
}

std::string Find(const Settings& settings, std::string_view key) {
  const auto found = settings.find(key);
  return found == settings.end() ? std::string() : found->second;
}

bool ReadNumber(const Settings& settings, std::string_view key, uint32_t& value) {
  const auto number = ParseNumberWithin<uint32_t>(Find(settings, key), 0, kNumberMax);
  value = number.value_or(0);
  return number.has_value();
}

// Also true if no era is recorded.
bool ReadEra(const Settings& settings, Hint& hint) {
  if (!settings.contains(kEra)) return true;
  const Result<Nonce> era = Nonce::Parse(Find(settings, kEra));
  const auto version = ParseNumber<int64_t>(Find(settings, kRootVersion));
  const auto last = ParseNumberWithin<int64_t>(Find(settings, kLast), 0, kRecordTimeMax.ms());
  if (!era.ok() || !version || !last) return false;
  hint.era = *era;
  hint.root_version = *version;
  hint.last = WallMs(*last);
  return true;
}

// As ReadEra.
bool ReadClaim(const Settings& settings, Hint& hint) {
  if (!settings.contains(kSlotClaim)) return true;
  const Result<Nonce> claim = Nonce::Parse(Find(settings, kSlotClaim));
  const auto version = ParseNumber<int64_t>(Find(settings, kSlotVersion));
  const auto created = ParseNumber<int64_t>(Find(settings, kSlotCreated));
  if (!claim.ok() || !version || !created) return false;
  hint.claim = *claim;
  hint.version = *version;
  hint.created_zxid = *created;
  return true;
}

Status CheckFormat(const Settings& settings) {
  uint32_t format = 0;
  const bool told = ReadNumber(settings, kFormatKey, format);
  if (told && format == kHintFormat) return {};
  if (told && format > kHintFormat) {
    return Invalid(
        "a newer Firn has used this state folder; install that version again, or use another "
        "--state_dir");
  }
  return Invalid(
      "this state folder was written by Firn 0.1, which is no longer supported; use another "
      "--state_dir");
}

}  // namespace

std::string FormatHint(const Hint& hint) {
  std::string text =
      Cat("# Firn: which machine id to try first. Holds no permission; safe to copy or delete.\n",
          kFormatKey, "=", kHintFormat, "\n",       //
          kMachine, "=", hint.machine, "\n",        //
          kWorker, "=", hint.slot.worker, "\n",     //
          kRack, "=", hint.slot.rack, "\n",         //
          kCluster, "=", Escaped(hint.uuid), "\n",  //
          kLayout, "=", Escaped(hint.layout), "\n");
  if (hint.era.zero()) return text;
  text += Cat(kEra, "=", hint.era.text(), "\n",            //
              kRootVersion, "=", hint.root_version, "\n",  //
              kLast, "=", hint.last.ms(), "\n");
  if (hint.claim.zero()) return text;
  return Cat(std::move(text), kSlotClaim, "=", hint.claim.text(), "\n",  //
             kSlotVersion, "=", hint.version, "\n",                      //
             kSlotCreated, "=", hint.created_zxid, "\n");
}

Result<Hint> ParseHint(std::string_view text) {
  if (text.size() > StateFolder::kHintBytesMax) return Corrupt("the hint file is too long");
  FIRN_ASSIGN(const Settings settings, ReadSettings(text));
  // Only a file that is certainly a hint can have another format.
  if (!settings.contains(kMachine) || !settings.contains(kCluster)) {
    return Corrupt("the hint file lacks a key");
  }
  FIRN_TRY(CheckFormat(settings));
  Hint hint;
  hint.uuid = Find(settings, kCluster);
  hint.layout = Find(settings, kLayout);
  const bool good = ReadNumber(settings, kMachine, hint.machine) &&
                    ReadNumber(settings, kWorker, hint.slot.worker) &&
                    ReadNumber(settings, kRack, hint.slot.rack) && IsUuid(hint.uuid) &&
                    !hint.layout.empty() && hint.layout.size() <= kLayoutBytesMax &&
                    IsPrintableUtf8(hint.layout);
  if (!good || !ReadEra(settings, hint) || !ReadClaim(settings, hint)) {
    return Corrupt("the hint file lacks a key or has an invalid value");
  }
  return hint;
}

}  // namespace firn
