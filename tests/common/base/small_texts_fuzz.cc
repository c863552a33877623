// Parses arbitrary bytes as each kind of small text in untrusted input: an endpoint, a time, a
// date, an encoded word, a tag's name in a path. Each is refused with a printable reason, or equal
// when written again.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/url_encoding.h"
#include "common/base/utf8.h"
#include "common/net/endpoint.h"
#include "common/tag/tag_name.h"
#include "common/time/civil_time.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace firn {
namespace {

void Expect(bool holds, const char* what) {
  if (!holds) Die(what);
}

// Returns whether the text was parsed. A refusal must not contain control characters.
template <typename T>
bool WasRead(const Result<T>& result) {
  Expect(IsPrintableUtf8(result.status().message()), "a fault is not printable");
  return result.ok();
}

void CheckEndpoint(std::string_view text) {
  const Result<Endpoint> endpoint = Endpoint::Parse(text);
  if (!WasRead(endpoint)) return;
  Expect(*Endpoint::Parse(endpoint->ToString()) == *endpoint, "an endpoint reads otherwise");
  WasRead(IpAsNumber(endpoint->host));
}

void CheckTimes(std::string_view text) {
  if (const Result<WallMs> time = ParseRfc3339(text); WasRead(time)) {
    Expect(InCalendar(*time), "a time outside the calendar");
    Expect(*ParseRfc3339(FormatRfc3339(*time)) == *time, "a time reads otherwise");
  }
  if (const Result<WallMs> day = ParseDate(text); WasRead(day)) {
    Expect(FormatRfc3339(*day) == std::string(text) + "T00:00:00.000Z", "a date reads otherwise");
  }
}

void CheckWords(std::string_view text) {
  Expect(*UrlDecode(UrlEncode(text)) == text, "an encoded word reads otherwise");
  WasRead(UrlDecode(text));
  if (const Result<std::string> name = DecodeTagName(text); WasRead(name)) {
    Expect(EncodeTagName(*name) == text, "two components stand for one tag");
  }
}

}  // namespace
}  // namespace firn

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  firn::CheckEndpoint(text);
  firn::CheckTimes(text);
  firn::CheckWords(text);
  return 0;
}
