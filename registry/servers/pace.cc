#include "registry/servers/pace.h"

#include "common/base/url_encoding.h"
#include "common/json/json_object.h"
#include "registry/seam/requests.h"

namespace firn {

std::string PacePath(std::string_view address) { return ChildPath(kPacesPath, UrlEncode(address)); }

std::string FormatPace(const ServerPace& pace) {
  JsonWriter writer;
  writer.Number("over_ms", pace.over.count())
      .Number("ids", pace.ids)
      .Number("calls", pace.calls)
      .Number("refused", pace.refused);
  if (pace.p99_us) writer.Number("p99_us", *pace.p99_us);
  return writer.Done();
}

Result<ServerPace> ParsePace(std::string_view json) {
  constexpr size_t kBytesMax = 4096;
  JsonReader read(json, kBytesMax);
  ServerPace pace;
  int64_t over_ms = 0, p99_us = -1;
  read.Number("over_ms", over_ms, 1)
      .Number("ids", pace.ids, 0)
      .Number("calls", pace.calls, 0)
      .Number("refused", pace.refused, 0)
      .NumberIfAny("p99_us", p99_us, 0, INT64_MAX);
  FIRN_TRY(read.status());
  pace.over = Milliseconds(over_ms);
  if (p99_us >= 0) pace.p99_us = p99_us;
  return pace;
}

}  // namespace firn
