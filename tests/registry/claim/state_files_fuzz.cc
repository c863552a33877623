// Any bytes as a grant record or a hint file: refused with a reason, or read and written the same.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "registry/claim/grant_file.h"
#include "registry/claim/hint.h"

namespace {

void Check(bool holds, std::string_view what) {
  if (!holds) firn::Die(what);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const firn::Result<firn::Hint> hint = firn::ParseHint(text);
  if (hint.ok()) Check(*firn::ParseHint(firn::FormatHint(*hint)) == *hint, "another hint");
  const auto record = firn::ParseGrantRecord(text);
  if (record.ok()) {
    Check(*firn::ParseGrantRecord(firn::FormatGrantRecord(*record)) == *record, "another grant");
  }
  return 0;
}
