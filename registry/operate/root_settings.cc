#include "registry/operate/root_settings.h"

#include <algorithm>
#include <utility>

#include <fcntl.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/base/url_encoding.h"
#include "common/json/json_object.h"
#include "registry/cluster/reserved.h"
#include "registry/operate/reserve.h"

namespace firn {
namespace {

constexpr uint32_t kMachineMax = 65'535;

Result<ReservedIds> ParseRange(std::string_view part) {
  const size_t equals = std::min(part.find('='), part.size());
  const std::string_view range = part.substr(0, equals);
  const size_t dash = std::min(range.find('-'), range.size());
  const auto first = ParseNumberWithin<uint32_t>(range.substr(0, dash), 0, kMachineMax);
  const auto last = dash == range.size()
                        ? first
                        : ParseNumberWithin<uint32_t>(range.substr(dash + 1), 0, kMachineMax);
  const Result<std::string> used_by = UrlDecode(part.substr(std::min(equals + 1, part.size())));
  if (!first || !last || *last < *first || !used_by.ok() || used_by->empty()) {
    return Invalid(Quoted(part) + " is not ID=SYSTEM or FIRST-LAST=SYSTEM, as in 0-1=old%20system");
  }
  return ReservedIds{MachineId(*first), MachineId(*last), *used_by};
}

}  // namespace

std::string FormatReserved(const std::vector<ReservedIds>& reserved) {
  std::string word;
  for (const auto& [first, last, used_by] : reserved) {
    word += Cat(word.empty() ? "" : ",", first.value());
    if (last != first) word += Cat("-", last.value());
    word += "=" + UrlEncode(used_by);
  }
  return word;
}

Result<std::vector<ReservedIds>> ParseReserved(std::string_view word) {
  std::vector<ReservedIds> reserved;
  while (!word.empty()) {
    const std::string_view part = word.substr(0, word.find(','));
    word.remove_prefix(std::min(word.size(), part.size() + 1));
    FIRN_ASSIGN(ReservedIds range, ParseRange(part));
    reserved.push_back(std::move(range));
  }
  return reserved;
}

Status CheckReserved(const std::vector<ReservedIds>& reserved, const RackSplit& split) {
  for (const auto& [first, last, used_by] : reserved) {
    if (last.value() >= split.workers() * split.racks()) {
      return Invalid(Cat("machine id ", last.value(), " is not in this layout"));
    }
    if (used_by.size() > kReservedForBytesMax) {
      return Invalid(Cat("the name of the system that uses machine id ", first.value(),
                         " is longer than ", kReservedForBytesMax, " bytes"));
    }
  }
  return {};
}

Result<uint32_t> WorkersWith(const std::vector<ReservedIds>& reserved, const RackSplit& split) {
  FIRN_TRY(CheckReserved(reserved, split));
  uint32_t workers = 0;
  for (const auto& [first, last, used_by] : reserved) {
    workers = std::max(workers, split.WorkerOf(last) + 1);
  }
  return workers;
}

void RootSettings::Add(MachineId machine, const SlotRecord& record) {
  if (!record.retired) return;
  if (!IsReserved(record)) return retired.push_back(machine);
  const std::string used_by = record.owner.substr(kReservedPrefix.size());
  if (!reserved.empty() && reserved.back().used_by == used_by &&
      reserved.back().last.value() + 1 == machine.value()) {
    reserved.back().last = machine;
  } else {
    reserved.push_back({machine, machine, used_by});
  }
}

WallMs RootSettings::IdsBy(WallMs now) const {
  if (floor == WallMs() || era_began == WallMs()) return floor;
  return floor + std::max(Milliseconds(0), now - era_began);
}

RootSettings SettingsOf(const ClusterMeta& meta, int64_t version, const ClusterSettings& beside) {
  return {.uuid = meta.uuid,
          .layout = meta.layout,
          .rack_bits = meta.rack_bits,
          .default_strategy = meta.default_strategy,
          .ids_since = meta.ids_since,
          .lease_share = beside.LeaseShareUnder(meta),
          .window = beside.window,
          .settings_version = beside.version,
          .era = meta.era,
          .version = version,
          .floor = meta.floor};
}

std::string FormatRootSettings(const RootSettings& settings) {
  std::string retired;
  for (const MachineId machine : settings.retired) {
    retired += Cat(retired.empty() ? "" : ",", machine.value());
  }
  JsonWriter write;
  if (settings.settings_version != RootSettings::kNotRecorded) {
    write.Number("settings_version", settings.settings_version);
  }
  if (settings.machines_version != RootSettings::kNotRecorded) {
    write.Number("machines_version", settings.machines_version);
  }
  return write.Text("uuid", settings.uuid)
      .Text("layout", settings.layout)
      .Number("rack_bits", settings.rack_bits)
      .Number("workers", settings.workers)
      .Text("default_strategy", settings.default_strategy)
      .Number("ids_since_ms", settings.ids_since.ms())
      .Number("lease_share", settings.lease_share)
      .Number("claim_window_ms", settings.window.count())
      .Text("era", settings.era.text())
      .Number("root_version", settings.version)
      .Number("floor_ms", settings.floor.ms())
      .Number("era_began_ms", settings.era_began.ms())
      .Text("reserved", FormatReserved(settings.reserved))
      .Text("retired", retired)
      .Done();
}

Result<RootSettings> ParseRootSettings(std::string_view json) {
  RootSettings settings;
  std::string era, reserved, retired;
  int64_t rack_bits = 0, workers = 0, ids_since = 0, floor = 0, era_began = 0;
  int64_t window = 0;
  JsonReader read(json, kRootSettingsBytesMax);
  read.Text("uuid", settings.uuid)
      .Text("layout", settings.layout)
      .Number("rack_bits", rack_bits, 0, 16)
      .Number("workers", workers, 0, kMachineMax + 1)
      .Text("default_strategy", settings.default_strategy)
      .Number("ids_since_ms", ids_since, 0, kRecordTimeMax.ms())
      .NumberIfAny("lease_share", settings.lease_share, 0, 100)
      .NumberIfAny("claim_window_ms", window, 0, ClusterSettings::kWindowMax.count())
      .NumberIfAny("settings_version", settings.settings_version, INT64_MIN, INT64_MAX)
      .NumberIfAny("machines_version", settings.machines_version, INT64_MIN, INT64_MAX)
      .Text("era", era)
      .Number("root_version", settings.version, INT64_MIN)
      .Number("floor_ms", floor, 0, kRecordTimeMax.ms())
      .Number("era_began_ms", era_began, 0, kRecordTimeMax.ms())
      .Text("reserved", reserved, kRootSettingsBytesMax)
      .Text("retired", retired, kRootSettingsBytesMax);
  FIRN_TRY(read.status());
  if (!IsUuid(settings.uuid)) return Corrupt("\"uuid\" is not a UUID");
  FIRN_ASSIGN(settings.era, Nonce::Parse(era));
  settings.rack_bits = static_cast<int>(rack_bits);
  settings.workers = static_cast<uint32_t>(workers);
  settings.ids_since = WallMs(ids_since);
  settings.window = Milliseconds(window);
  settings.floor = WallMs(floor);
  settings.era_began = WallMs(era_began);
  const Result<std::vector<ReservedIds>> ranges = ParseReserved(reserved);
  if (!ranges.ok()) return Corrupt(ranges.status().message());
  settings.reserved = *ranges;
  std::string_view rest = retired;
  while (!rest.empty()) {
    const std::string_view digits = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), digits.size() + 1));
    const auto machine = ParseNumberWithin<uint32_t>(digits, 0, kMachineMax);
    if (!machine) return Corrupt("\"retired\" is not a list of machine ids");
    settings.retired.emplace_back(*machine);
  }
  return settings;
}

Result<RootSettings> ReadRootSettings(const std::string& path, const std::string& uuid) {
  FIRN_ASSIGN(const std::string text, ReadRegularFile(path, kRootSettingsBytesMax, O_NOFOLLOW));
  Result<RootSettings> settings = ParseRootSettings(text);
  if (settings.ok() && settings->uuid != uuid) return Corrupt("it is of another cluster");
  return settings;
}

}  // namespace firn
