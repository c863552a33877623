#include "registry/servers/provider.h"

#include <algorithm>
#include <vector>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/base/url_encoding.h"
#include "common/id/layout.h"
#include "common/json/json_object.h"

namespace firn {
namespace {

constexpr std::string_view kScheme = "thrift://";
constexpr std::string_view kInterface = "firn.IdService";
constexpr size_t kNodeNameBytesMax = 4096;
constexpr size_t kAddressBytesMax = 300;
constexpr int64_t kMachineMax = (1 << Layout::kMachineBitsMax) - 1;

bool IsPrintableAscii(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c > '~') return false;
  }
  return true;
}

Result<int64_t> ParseInteger(std::string_view text, int64_t min, int64_t max) {
  if (const auto value = ParseNumberWithin(text, min, max)) return *value;
  return Invalid(Quoted(text) + " is not a number in the permitted range");
}

// Removes and returns the part of `text` before `separator`; all of it if there is no separator.
std::string_view CutOff(std::string_view& text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

Status SetParameter(std::string_view key, const std::string& value, Provider& provider) {
  constexpr int64_t kMax = INT64_MAX;
  if (key == "application") {
    provider.application = value;
  } else if (key == "build") {
    provider.build = value;
  } else if (key == "rack") {
    FIRN_ASSIGN(const int64_t rack, ParseInteger(value, 0, 1023));
    provider.rack = static_cast<uint32_t>(rack);
  } else if (key == "tls") {
    provider.tls = value == "true";
  } else if (key == "timestamp") {
    FIRN_ASSIGN(const int64_t since_ms, ParseInteger(value, 0, kMax));
    provider.since = WallMs(since_ms);
  } else if (key == "pid") {
    FIRN_ASSIGN(provider.pid, ParseInteger(value, 0, kMax));
  }
  return {};  // Ignores Dubbo's own parameters, and parameters of later versions.
}

Result<ServerPhase> ParsePhase(const Json* state) {
  for (const auto phase : {ServerPhase::kNotReady, ServerPhase::kReady, ServerPhase::kDraining}) {
    if (state != nullptr && *state == Json(AnnouncedPhase(phase))) return phase;
  }
  return Corrupt("state is not one of not_ready, serving, draining");
}

Status TakeHigh(const Json* member, std::map<std::string, int64_t>& high) {
  if (member == nullptr) return {};
  if (!member->is_object()) return Corrupt("high is not an object");
  for (const auto& [tag, value] : member->members()) {
    const std::optional<int64_t> number = value.whole();
    if (!number || *number < 0) return Corrupt("high of a tag is not a whole number of 63 bits");
    high.emplace(tag, *number);
  }
  return {};
}

Status TakeStores(const Json* member, std::map<std::string, bool>& stores) {
  if (member == nullptr) return {};
  if (!member->is_object()) return Corrupt("stores is not an object");
  for (const auto& [store, unbuffered] : member->members()) {
    if (!unbuffered.is_boolean()) return Corrupt("a member of stores must be true or false");
    stores.emplace(store, unbuffered.boolean());
  }
  return {};
}

Status TakeNames(const Json* member, std::set<std::string>& names) {
  if (member == nullptr) return {};
  if (!member->is_array()) return Corrupt("a list of names is not an array");
  for (const Json& name : *member) {
    if (!name.is_string()) return Corrupt("a name is not a string");
    names.insert(name.text());
  }
  return {};
}

using Reasons = std::map<std::string, std::string>;  // by tag

Status TakeReasons(const Json* member, Reasons& reasons) {
  if (member == nullptr) return {};
  if (!member->is_object()) return Corrupt("the reasons by tag are not an object");
  for (const auto& [tag, why] : member->members()) {
    if (!why.is_string()) return Corrupt("a tag's reason is not a string");
    reasons.emplace(tag, why.text());
  }
  return {};
}

void TakeText(const Json* member, std::string& text) {
  if (member != nullptr && member->is_string()) text = member->text();
}

void AddText(const char* key, const std::string& text, Json& object) {
  if (!text.empty()) object[key] = Shortened(text, kReasonBytesMax);
}

// Returns how many were left out.
int64_t AddReasons(const char* key, const Reasons& reasons, Json& object) {
  int64_t others = 0;
  Json written = Json::object();
  for (const auto& [tag, why] : reasons) {
    if (written.size() == kRefusedMax) {
      ++others;
    } else {
      written[tag] = Shortened(why, kRefusedBytesMax);
    }
  }
  if (!written.empty()) object[key] = std::move(written);
  return others;
}

Status TakeMore(const Json* member, std::vector<HeldMachine>& more) {
  if (member == nullptr) return {};
  if (!member->is_array() || member->size() > size_t{kMachineMax}) {
    return Corrupt("more is not a list of machine ids");
  }
  for (const Json& one : *member) {
    if (!one.is_object()) return Corrupt("a machine id in more is not an object");
    const std::optional<int64_t> machine = one.at("machine").whole();
    const std::optional<int64_t> bound_ms = one.at("bound_ms").whole();
    if (!machine || *machine < 0 || *machine > kMachineMax || !bound_ms || *bound_ms < 0) {
      return Corrupt("an entry of 'more' lacks a machine id or its bound");
    }
    more.push_back({MachineId(static_cast<uint32_t>(*machine)), WallMs(*bound_ms)});
  }
  return {};
}

// Returns as many tags as fit, the highest first; raises `others` to the first one omitted.
Json HighestOf(const std::map<std::string, int64_t>& high, int64_t& others) {
  std::vector<std::pair<int64_t, std::string_view>> order;
  for (const auto& [tag, value] : high) {
    if (value > 0) order.emplace_back(value, tag);
  }
  std::sort(order.begin(), order.end(), std::greater<>());
  Json object = Json::object();
  size_t room = kHighBytesMax;
  for (const auto& [value, tag] : order) {
    const size_t bytes = JsonText(Json{{tag, value}}).size() - 1;  // a comma instead of the braces
    if (bytes > room) {
      others = std::max(others, value);
      break;
    }
    room -= bytes;
    object.AddNew(tag, value);
  }
  return object;
}

Status TakeCertificates(const Json* ends, std::map<std::string, WallMs>& certificates) {
  if (ends == nullptr) return {};
  if (!ends->is_object()) return Corrupt("certificates is not an object");
  for (const auto& [which, end] : ends->members()) {
    const std::optional<int64_t> ms = end.whole();
    if (!ms) return Corrupt("the end of a certificate is not a number");
    certificates.emplace(which, WallMs(*ms));
  }
  return {};
}

}  // namespace

std::vector<HeldMachine> ProviderReport::Held() const {
  std::vector<HeldMachine> held;
  if (machine) held.push_back({*machine, bound});
  held.insert(held.end(), more.begin(), more.end());
  return held;
}

std::optional<WallMs> ProviderReport::BoundOf(MachineId held) const {
  for (const auto& [one, bound_of_one] : Held()) {
    if (one == held) return bound_of_one;
  }
  return std::nullopt;
}

int64_t ProviderReport::HighOf(const std::string& tag) const {
  const auto named = high.find(tag);
  return named == high.end() ? high_others : named->second;
}

std::string_view AnnouncedPhase(ServerPhase phase) {
  switch (phase) {
    case ServerPhase::kNotReady:
      return "not_ready";
    case ServerPhase::kReady:
      return "serving";
    case ServerPhase::kOffline:
    case ServerPhase::kDraining:
      return "draining";
  }
  return "no such phase";
}

std::string ProviderNodeName(const Provider& provider) {
  std::string url;
  url.append(kScheme).append(provider.address).append("/").append(kInterface);
  url += "?application=" + UrlEncode(provider.application) + "&build=" + UrlEncode(provider.build);
  url.append("&category=providers&interface=").append(kInterface);
  url += Cat("&pid=", provider.pid, "&rack=", provider.rack);
  url += Cat("&side=provider&timestamp=", provider.since.ms());
  if (provider.tls) url += "&tls=true";
  return UrlEncode(url);
}

Result<Provider> ParseProviderNodeName(std::string_view name) {
  if (name.size() > kNodeNameBytesMax) return Corrupt("the name is too long for a provider");
  FIRN_ASSIGN(const std::string url, UrlDecode(name));
  std::string_view rest = url;
  if (!rest.starts_with(kScheme)) return Corrupt("not a thrift:// URL");
  rest.remove_prefix(kScheme.size());

  Provider provider;
  provider.address = CutOff(rest, '/');
  const bool address_ok = provider.address.size() <= kAddressBytesMax &&
                          IsPrintableAscii(provider.address) &&
                          provider.address.find(':') != std::string::npos;
  if (!address_ok) return Corrupt("not a host and port");
  if (CutOff(rest, '?') != kInterface) return Corrupt("another service's provider");
  while (!rest.empty()) {
    std::string_view pair = CutOff(rest, '&');
    const std::string_view key = CutOff(pair, '=');
    FIRN_ASSIGN(const std::string value, UrlDecode(pair));
    FIRN_TRY(SetParameter(key, value, provider).WithContext(key));
  }
  return provider;
}

std::string FormatReport(const ProviderReport& report) {
  Json object{{"state", AnnouncedPhase(report.phase)},
              {"format", report.format},
              {"bound_ms", report.bound.ms()},
              {"clock_skew_ms", report.clock_skew_ms}};
  AddText("reason", report.reason, object);
  if (report.machine) object["machine"] = report.machine->value();
  for (const auto& [held, bound] : report.more) {
    object["more"].push_back({{"machine", held.value()}, {"bound_ms", bound.ms()}});
  }
  if (report.lease_bound != WallMs()) object["lease_bound_ms"] = report.lease_bound.ms();
  if (report.window.count() != 0) object["claim_window_ms"] = report.window.count();
  if (report.wall_skew_ms) object["wall_skew_ms"] = *report.wall_skew_ms;
  if (!report.cluster.empty()) object["cluster"] = report.cluster;
  int64_t others = report.high_others;
  if (Json high = HighestOf(report.high, others); !high.empty()) object["high"] = std::move(high);
  if (others > 0) object["high_others"] = others;
  if (!report.stores.empty()) object["stores"] = report.stores;
  if (!report.stand_ins.empty()) object["stand_ins"] = report.stand_ins;
  if (!report.plugins.empty()) object["plugins"] = report.plugins;
  if (!report.strategies.empty()) object["strategies"] = report.strategies;
  const int64_t refused_others =
      report.refused_others + AddReasons("refused", report.refused, object);
  if (refused_others > 0) object["refused_others"] = refused_others;
  AddReasons("outdated", report.outdated, object);
  AddReasons("unsupplied", report.unsupplied, object);
  for (const auto& [which, end] : report.certificates) object["certificates"][which] = end.ms();
  if (!report.admin.empty()) object["admin"] = report.admin;
  if (report.overloaded) object["overloaded"] = true;
  if (report.history_lost) object["history_lost"] = true;
  AddText("clock_trouble", report.clock_trouble, object);
  AddText("grant_trouble", report.grant_trouble, object);
  return JsonText(object);
}

Result<ProviderReport> ParseReport(std::string_view json) {
  // The highest numbers of thousands of tags; none is looked up by name.
  constexpr size_t kValuesMax = kReportBytesMax / 8;
  JsonReader read(json, kReportBytesMax, kValuesMax);
  FIRN_TRY(read.status());
  ProviderReport report;
  FIRN_ASSIGN(report.phase, ParsePhase(read.Find("state")));
  TakeText(read.Find("reason"), report.reason);
  report.format = ClusterMeta::kFormatOldest - 1;  // older servers do not report their format
  int64_t machine = -1;
  int64_t bound_ms = 0;
  int64_t lease_bound_ms = 0;
  int64_t window_ms = 0;
  read.NumberIfAny("format", report.format, 1, INT32_MAX)
      .NumberIfAny("machine", machine, 0, kMachineMax)
      .NumberIfAny("bound_ms", bound_ms, 0, INT64_MAX)
      .NumberIfAny("lease_bound_ms", lease_bound_ms, 0, INT64_MAX)
      .NumberIfAny("claim_window_ms", window_ms, 0, INT64_MAX)
      .NumberIfAny("clock_skew_ms", report.clock_skew_ms, -INT64_MAX, INT64_MAX)
      .NumberIfAny("high_others", report.high_others, 0, INT64_MAX)
      .NumberIfAny("refused_others", report.refused_others, 0, INT64_MAX);
  if (read.Find("wall_skew_ms") != nullptr) {
    read.Number("wall_skew_ms", report.wall_skew_ms.emplace(), -INT64_MAX, INT64_MAX);
  }
  if (read.Find("cluster") != nullptr) {
    read.Text("cluster", report.cluster);
    FIRN_TRY(read.status());
    if (!IsUuid(report.cluster)) return Corrupt("cluster is not a UUID");
  }
  FIRN_TRY(read.status());
  FIRN_TRY(TakeHigh(read.Find("high"), report.high));
  FIRN_TRY(TakeStores(read.Find("stores"), report.stores));
  FIRN_TRY(TakeNames(read.Find("stand_ins"), report.stand_ins));
  FIRN_TRY(TakeNames(read.Find("plugins"), report.plugins));
  FIRN_TRY(TakeNames(read.Find("strategies"), report.strategies));
  FIRN_TRY(TakeMore(read.Find("more"), report.more));
  FIRN_TRY(TakeReasons(read.Find("refused"), report.refused));
  FIRN_TRY(TakeReasons(read.Find("outdated"), report.outdated));
  FIRN_TRY(TakeReasons(read.Find("unsupplied"), report.unsupplied));
  FIRN_TRY(TakeCertificates(read.Find("certificates"), report.certificates));
  read.FlagIfAny("overloaded", report.overloaded).FlagIfAny("history_lost", report.history_lost);
  FIRN_TRY(read.status());
  TakeText(read.Find("admin"), report.admin);
  TakeText(read.Find("clock_trouble"), report.clock_trouble);
  TakeText(read.Find("grant_trouble"), report.grant_trouble);
  if (machine >= 0) report.machine = MachineId(static_cast<uint32_t>(machine));
  report.bound = WallMs(bound_ms);
  report.lease_bound = WallMs(lease_bound_ms);
  report.window = Milliseconds(window_ms);
  return report;
}

std::string FormatConfigurator(const Configurator& configurator) {
  return JsonWriter()
      .Number("weight", configurator.weight)
      .Flag("disabled", configurator.disabled)
      .Others(configurator.others)
      .Done();
}

Result<Configurator> ParseConfigurator(std::string_view json) {
  constexpr size_t kBytesMax = 4096;
  JsonReader read(json, kBytesMax);
  Configurator configurator;
  int64_t weight = configurator.weight;
  read.NumberIfAny("weight", weight, 0, Configurator::kWeightMax)
      .FlagIfAny("disabled", configurator.disabled)
      .Others(configurator.others);
  FIRN_TRY(read.status());
  configurator.weight = static_cast<int>(weight);
  return configurator;
}

}  // namespace firn
