#include "registry/cluster/json_object.h"

#include <set>

namespace firn {
namespace {

constexpr int kDepthMax = 8;
constexpr size_t kAnyBytesMax = 64 << 10;

}  // namespace

Result<JsonObject> ParseJsonObject(std::string_view data, size_t bytes_max) {
  if (data.size() > bytes_max) return Corrupt("has " + std::to_string(data.size()) + " bytes");
  bool repeated = false, deep = false;
  std::set<std::string> keys;
  const auto watch = [&](int depth, JsonObject::parse_event_t event, JsonObject& parsed) {
    deep |= depth > kDepthMax;
    if (event == JsonObject::parse_event_t::key && depth == 1) {
      repeated |= !keys.insert(parsed.get<std::string>()).second;
    }
    return depth <= kDepthMax;
  };
  try {
    JsonObject object = JsonObject::parse(data, watch);
    if (deep) return Corrupt("is nested deeper than " + std::to_string(kDepthMax));
    if (repeated) return Corrupt("has a member twice");
    if (!object.is_object()) return Corrupt("is not a JSON object");
    return object;
  } catch (const JsonObject::parse_error& error) {
    return Corrupt("is not JSON, from byte " + std::to_string(error.byte));
  } catch (const std::exception&) {
    return Corrupt("is JSON with a number out of range");
  }
}

std::string OthersOf(const JsonObject& object, const std::function<bool(std::string_view)>& known) {
  JsonObject others = JsonObject::object();
  for (const auto& [key, value] : object.items()) {
    if (!known(key)) others[key] = value;
  }
  return others.empty() ? std::string() : others.dump();
}

Status PutOthers(const std::string& others, JsonObject& object) {
  if (others.empty()) return {};
  const Result<JsonObject> parsed = ParseJsonObject(others, kAnyBytesMax);
  if (!parsed.ok()) return Invalid("the members to keep: " + parsed.status().message());
  for (const auto& [key, value] : parsed->items()) {
    if (!object.contains(key)) object[key] = value;
  }
  return {};
}

}  // namespace firn
