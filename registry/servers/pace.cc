#include "registry/servers/pace.h"

#include <utility>

#include "common/base/url_encoding.h"
#include "common/json/json_object.h"
#include "registry/seam/requests.h"

namespace firn {
namespace {

constexpr size_t kProtocolsMax = 16;

using Sample = PaceHistory::Sample;
constexpr std::pair<const char*, int64_t Sample::*> kColumns[] = {
    {"ids", &Sample::ids}, {"refused", &Sample::refused}, {"p99_us", &Sample::p99_us}};

Json HistoryJson(const PaceHistory& history) {
  Json json{{"every_ms", PaceHistory::kEvery.count()}, {"age_ms", history.age.count()}};
  for (const auto& [name, column] : kColumns) {
    Json& values = json[name] = Json::array();
    for (const Sample& sample : history.samples) values.push_back(sample.*column);
  }
  return json;
}

Status TakeHistory(const Json* member, PaceHistory& history) {
  if (member == nullptr) return {};
  if (!member->is_object()) return Corrupt("history is not an object");
  JsonReader read(*member);
  int64_t age_ms = 0;
  FIRN_TRY(read.Number("age_ms", age_ms, 1 - PaceHistory::kEvery.count()).status());
  history.age = Milliseconds(age_ms);
  const Json* const first = read.Find(kColumns[0].first);
  history.samples.resize(first != nullptr ? first->size() : 0);
  if (history.samples.size() > PaceHistory::kSamplesMax) return Corrupt("too long a history");
  for (const auto& [name, column] : kColumns) {
    const Json* const values = read.Find(name);
    if (values == nullptr || !values->is_array() || values->size() != history.samples.size()) {
      return Corrupt("the lists of a history differ in length");
    }
    for (size_t i = 0; i < values->size(); ++i) {
      const std::optional<int64_t> value = values->at(i).whole();
      if (!value || *value < 0) return Corrupt("a history contains something else than counts");
      history.samples[i].*column = *value;
    }
  }
  return {};
}

Status TakeConnections(const Json* member, std::map<std::string, int64_t>& connections) {
  if (member == nullptr) return {};
  if (!member->is_object() || member->size() > kProtocolsMax) {
    return Corrupt("connections is not an object of counts");
  }
  for (const auto& [protocol, open] : member->members()) {
    const std::optional<int64_t> count = open.whole();
    if (!count || *count < 0) return Corrupt("connections contains something else than counts");
    connections.emplace(protocol, *count);
  }
  return {};
}

}  // namespace

std::string PacePath(std::string_view address) { return ChildPath(kPacesPath, UrlEncode(address)); }

std::string FormatHistory(const PaceHistory& history) { return JsonText(HistoryJson(history)); }

std::string FormatPace(const ServerPace& pace) {
  Json json{{"over_ms", pace.over.count()},
            {"ids", pace.ids},
            {"calls", pace.calls},
            {"refused", pace.refused}};
  if (pace.p99_us) json["p99_us"] = *pace.p99_us;
  if (!pace.connections.empty()) json["connections"] = pace.connections;
  if (!pace.console.empty()) json["console"] = pace.console;
  std::string text = JsonText(json);
  if (pace.history.samples.empty()) return text;
  json["history"] = HistoryJson(pace.history);
  std::string whole = JsonText(json);
  return whole.size() <= kPaceBytesMax ? whole : text;
}

Result<ServerPace> ParsePace(std::string_view json) {
  JsonReader read(json, kPaceBytesMax);
  ServerPace pace;
  int64_t over_ms = 0, p99_us = -1;
  read.Number("over_ms", over_ms, 1)
      .Number("ids", pace.ids, 0)
      .Number("calls", pace.calls, 0)
      .Number("refused", pace.refused, 0)
      .NumberIfAny("p99_us", p99_us, 0, INT64_MAX);
  if (read.Find("console") != nullptr) read.Text("console", pace.console);
  FIRN_TRY(read.status());
  FIRN_TRY(TakeHistory(read.Find("history"), pace.history));
  FIRN_TRY(TakeConnections(read.Find("connections"), pace.connections));
  pace.over = Milliseconds(over_ms);
  if (p99_us >= 0) pace.p99_us = p99_us;
  return pace;
}

}  // namespace firn
