// Parses arbitrary bytes as tag definitions: refused with a reason, or equal when written and
// parsed again.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/utf8.h"
#include "common/tag/tag_ini.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const firn::TagIni ini = firn::ParseTagIni(text);
  for (const firn::LineFault& fault : ini.faults) {
    if (!firn::IsPrintableUtf8(fault.what)) firn::Die("a fault is not printable");
  }
  if (!ini.faults.empty()) return 0;
  const firn::TagIni again = firn::ParseTagIni(firn::WriteTagIni(ini.tags));
  if (again.tags != ini.tags || !again.faults.empty()) firn::Die("reads otherwise when written");
  return 0;
}
