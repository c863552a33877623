#include "common/json/json.h"

#include <algorithm>
#include <array>

#include "common/base/cat.h"

namespace firn {
namespace {

constexpr int kDepthMax = 8;

// Follows the parser, and sees what the document would not show.
struct Watch {
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > kDepthMax) {
      deep = true;
      return false;
    }
    const auto level = static_cast<size_t>(depth);
    if (event == Json::parse_event_t::object_start) members[level] = 0;
    if (event == Json::parse_event_t::key) ++members[level - 1];
    if (event == Json::parse_event_t::object_end) repeated |= parsed.size() != members[level];
    return true;
  }

  std::array<size_t, kDepthMax + 1> members{};  // so many were read, of the object at each depth
  bool deep = false;
  bool repeated = false;
};

bool IsPlain(char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; }

}  // namespace

Result<Json> ParseJson(std::string_view text, size_t bytes_max) {
  if (text.size() > bytes_max) {
    return Corrupt(Cat("has ", text.size(), " bytes, more than ", bytes_max));
  }
  Watch watch;
  try {
    Json object = Json::parse(text, std::ref(watch));
    if (watch.deep) return Corrupt(Cat("is nested deeper than ", kDepthMax));
    if (watch.repeated) return Corrupt("has a member twice");
    if (!object.is_object()) return Corrupt("is not a JSON object");
    return object;
  } catch (const Json::parse_error& error) {
    // The parser's own sentence quotes the text, which may hold anything: not repeated.
    return Corrupt(Cat("is not JSON, from byte ", error.byte));
  } catch (const std::exception&) {
    return Corrupt("is JSON with a number out of range");
  }
}

std::optional<int64_t> WholeNumber(const Json& json) {
  // Above 2^63 the library would hand out a negative number.
  const bool fits = json.is_number_unsigned() ? json.get<uint64_t>() <= uint64_t{INT64_MAX}
                                              : json.is_number_integer();
  return fits ? std::optional(json.get<int64_t>()) : std::nullopt;
}

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void AppendJsonText(std::string& out, std::string_view text) {
  if (!std::all_of(text.begin(), text.end(), IsPlain)) {
    out += JsonText(text);
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

}  // namespace firn
