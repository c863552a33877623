// Parses arbitrary bytes as a stores file: every fault is a printable sentence about a line, and in
// a file without faults all stores that are named exist.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/utf8.h"
#include "server/flags/stores_ini.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const firn::StoresIni ini = firn::ParseStoresIni(text);
  if (ini.faults.size() > firn::LineFaults::kMost) firn::Die("too many faults");
  for (const firn::LineFault& fault : ini.faults) {
    if (fault.line < 1 || !firn::IsPrintableUtf8(fault.what)) firn::Die("no sentence of a line");
  }
  if (!ini.faults.empty()) return 0;
  for (const firn::StoreDefinition& store : ini.stores) {
    const auto* const tiered = std::get_if<firn::TieredDefinition>(&store.what);
    if (tiered != nullptr && ini.Find(tiered->front) == nullptr)
      firn::Die("a front that is not there");
  }
  return 0;
}
