// Parses arbitrary bytes as a zone file and as its final rule: refused, or with offsets of at most
// a day.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/text/tzif.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace firn {
namespace {

void CheckOffsets(const TimeZone::Rules& rules) {
  for (const int64_t s : {kCalendarBegin.ms() / 1000, int64_t{-1}, int64_t{1'715'123'345},
                          int64_t{4'000'000'000}, kCalendarEnd.ms() / 1000 - 1}) {
    const auto& type = rules.At(std::chrono::sys_seconds(std::chrono::seconds(s)));
    if (std::chrono::abs(type.offset) > std::chrono::hours(26)) Die("an offset beyond a day");
  }
}

}  // namespace
}  // namespace firn

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto zone = firn::Tzif::Parse(bytes); zone.ok()) firn::CheckOffsets(**zone);
  if (const auto rule = firn::PosixTz::Parse(bytes); rule.ok()) firn::CheckOffsets(*rule);
  return 0;
}
