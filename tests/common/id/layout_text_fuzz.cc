// Parses arbitrary bytes as a layout's text: refused with a printable reason, or a layout whose
// text can be parsed again and whose ids round-trip at the limits of every field.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/utf8.h"
#include "common/id/layout.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace firn {
namespace {

void Check(bool holds, const char* what) {
  if (!holds) Die(what);
}

void CheckRoundTrip(const Layout& layout, const IdFields& fields) {
  const Result<int64_t> id = layout.Pack(fields);
  Check(id.ok(), "fields within their ranges are refused");
  const Result<IdFields> back = layout.Unpack(*id);
  Check(back.ok() && back->tick == fields.tick && back->machine == fields.machine &&
            back->sequence == fields.sequence,
        "an id gives other fields than it was made of");
}

void CheckLayout(const Layout& layout) {
  const Result<Layout> again = Layout::Parse(layout.text());
  Check(again.ok() && *again == layout, "a layout's text reads otherwise");
  CheckRoundTrip(layout, {});
  CheckRoundTrip(layout,
                 {layout.last_tick(), MachineId(layout.machines() - 1), layout.sequence().max()});
  Check(layout.TickAt(layout.end()) == layout.last_tick() + 1, "the end is not the end");
  Check(layout.epoch() < layout.end(), "ends before it begins");
}

}  // namespace
}  // namespace firn

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const firn::Result<firn::Layout> layout = firn::Layout::Parse(text);
  if (layout.ok()) {
    firn::CheckLayout(*layout);
  } else {
    firn::Check(firn::IsPrintableUtf8(layout.status().message()), "a fault is not printable");
  }
  return 0;
}
