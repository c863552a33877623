// Parses arbitrary bytes as a template: refused with a printable reason, or each of its texts can
// be converted back to its id at any time.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/utf8.h"
#include "common/text/text_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace firn {
namespace {

void CheckTemplate(const TextTemplate& made) {
  for (const int64_t id : {int64_t{0}, int64_t{7}, int64_t{240'507}, INT64_MAX, INT64_MIN}) {
    for (const int64_t ms : {INT64_MIN, int64_t{0}, int64_t{1'715'123'345'042}, INT64_MAX}) {
      const std::string text = made.Format(id, WallMs(ms));
      const Result<int64_t> back = made.ParseId(text);
      if (!back.ok() || *back != id) Die("a text gives another id");
      if (text.size() > made.length_max()) Die("a text is longer than the longest");
      if (!IsPrintableUtf8(text)) Die("a text is not printable");
    }
  }
}

}  // namespace
}  // namespace firn

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const firn::Result<firn::TextTemplate> made = firn::TextTemplate::Parse(text);
  if (made.ok()) {
    firn::CheckTemplate(*made);
    static_cast<void>(made->ParseId(text));
  } else if (!firn::IsPrintableUtf8(made.status().message())) {
    firn::Die("a fault is not printable");
  }
  return 0;
}
