// Any bytes as a properties file: refused in printable words, or read the same when written.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/properties.h"
#include "common/base/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const firn::Result<firn::Properties> read = firn::Properties::Parse(text);
  if (!read.ok()) {
    if (!firn::IsPrintableUtf8(read.status().message())) firn::Die("a fault is not printable");
    return 0;
  }
  const firn::Result<firn::Properties> again = firn::Properties::Parse(read->ToText());
  if (!again.ok() || again->entries().size() != read->entries().size()) {
    firn::Die("has other entries when written");
  }
  for (const firn::Properties::Entry& entry : read->entries()) {
    const std::string* value = again->Find(entry.key);
    if (value == nullptr || *value != entry.value) firn::Die("reads otherwise when written");
  }
  return 0;
}
