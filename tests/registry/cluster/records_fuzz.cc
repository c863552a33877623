// Parses arbitrary bytes as the data of a root node, a slot or a `live` node: refused with a
// reason, or equal when written again.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/utf8.h"
#include "registry/cluster/records.h"

namespace {

void Check(bool holds, std::string_view what) {
  if (!holds) firn::Die(what);
}

template <typename Record, typename Parse, typename Format>
void TryAs(std::string_view text, Parse parse, Format format) {
  const firn::Result<Record> record = parse(text);
  if (record.ok()) {
    Check(*parse(format(*record)) == *record, "reads otherwise when written");
  } else {
    Check(firn::IsPrintableUtf8(record.status().message()), "the reason is not printable");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  TryAs<firn::ClusterMeta>(text, firn::ParseMeta, firn::FormatMeta);
  TryAs<firn::SlotRecord>(text, firn::ParseSlotRecord, firn::FormatSlotRecord);
  TryAs<firn::LiveMark>(text, firn::ParseLiveMark, firn::FormatLiveMark);
  return 0;
}
