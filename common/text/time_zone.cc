#include "common/text/time_zone.h"

#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/text/tzif.h"

namespace firn {
namespace {

class FixedOffset final : public TimeZone::Rules {
 public:
  FixedOffset(std::chrono::seconds offset, std::string abbreviation)
      : type_{offset, false, std::move(abbreviation)} {}

  const TimeZone::LocalType& At(std::chrono::sys_seconds) const override { return type_; }

 private:
  const TimeZone::LocalType type_;
};

// "+08:00"
std::optional<std::chrono::seconds> ParseOffset(std::string_view text) {
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return {};
  for (const size_t i : {1u, 2u, 4u, 5u}) {
    if (!IsDigit(text[i])) return {};
  }
  const int hours = (text[1] - '0') * 10 + (text[2] - '0');
  const int minutes = (text[4] - '0') * 10 + (text[5] - '0');
  if (hours > 23 || minutes > 59) return {};
  const std::chrono::seconds offset(hours * 3600 + minutes * 60);
  return text[0] == '-' ? -offset : offset;
}

// Each part of "Asia/Shanghai" begins with a letter, so that none is "..", and none is empty.
bool IsZoneName(std::string_view name) {
  if (name.empty() || name.size() > TimeZone::kNameMax) return false;
  bool part_begins = true;
  for (const char c : name) {
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    const bool inside = letter || IsDigit(c) || c == '_' || c == '-' || c == '+';
    if (c == '/') {
      if (part_begins) return false;
    } else if (part_begins ? !letter : !inside) {
      return false;
    }
    part_begins = c == '/';
  }
  return !part_begins;
}

Result<std::string> ReadZoneFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(TimeZone::kFileBytesMax + 1, '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())) && !file.eof()) {
    return NotFound("cannot read " + path);
  }
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

// Caches each zone by its file's path as first loaded: files may change while the process runs, and
// all of its parts must agree when a day ends.
class LoadedZones {
 public:
  std::optional<TimeZone> Find(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto found = zones_.find(path);
    return found == zones_.end() ? std::nullopt : std::optional(found->second);
  }
  // Returns the zone that another thread has added in the meantime, if any.
  TimeZone Keep(const std::string& path, TimeZone zone) {
    const std::lock_guard lock(mutex_);
    return zones_.emplace(path, std::move(zone)).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, TimeZone> zones_;
};

LoadedZones& Loaded() {
  static auto& zones = *new LoadedZones();  // never destroyed, for threads that run at exit
  return zones;
}

}  // namespace

TimeZone TimeZone::Utc() {
  return TimeZone("UTC", std::make_shared<FixedOffset>(std::chrono::seconds(0), "UTC"));
}

Result<TimeZone> TimeZone::Load(std::string_view name, const std::string& folder) {
  if (name == "UTC" || name == "Z") return Utc();
  if (const std::optional<std::chrono::seconds> offset = ParseOffset(name)) {
    return TimeZone(std::string(name), std::make_shared<FixedOffset>(*offset, std::string(name)));
  }
  if (!IsZoneName(name)) {
    return Invalid(Quoted(name) + " is not a time zone such as UTC, +08:00 or Asia/Shanghai");
  }
  const std::string path = folder + "/" + std::string(name);
  if (std::optional<TimeZone> loaded = Loaded().Find(path)) return *std::move(loaded);
  const Result<std::string> bytes = ReadZoneFile(path);
  if (!bytes.ok()) return bytes.status().WithContext("no time zone " + std::string(name));
  Result<std::shared_ptr<const Tzif>> rules = Tzif::Parse(*bytes);
  if (!rules.ok()) return rules.status().WithContext(path);
  return Loaded().Keep(path, TimeZone(std::string(name), std::move(rules).value()));
}

const TimeZone::LocalType& TimeZone::At(WallMs t) const {
  using std::chrono::seconds;
  return rules_->At(std::chrono::sys_seconds(std::chrono::floor<seconds>(Milliseconds(t.ms()))));
}

}  // namespace firn
