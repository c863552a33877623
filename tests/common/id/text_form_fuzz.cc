// Parses arbitrary bytes as the text of an id in each form: refused with a printable reason, or a
// text of the same id as the text that Firn writes.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/utf8.h"
#include "common/id/text_form.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using firn::Base;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Base base : {Base::kDecimal, Base::kBase62, Base::kBase36, Base::kCrockford32}) {
    const firn::Result<int64_t> id = firn::ParseId(base, text);
    if (!id.ok()) {
      if (!firn::IsPrintableUtf8(id.status().message())) firn::Die("a fault is not printable");
      continue;
    }
    const std::string written = firn::TextForm{base}.Format(*id);
    if (firn::ParseId(base, written).value() != *id)
      firn::Die("an id reads otherwise when written");
    // These two accept variants; the others accept only leading zeros.
    const bool strict = base != Base::kCrockford32 && base != Base::kBase36;
    const bool minus = text.starts_with('-');
    const std::string_view digits = text.substr(minus ? 1 : 0);
    const size_t first = std::min(digits.find_first_not_of('0'), digits.size() - 1);
    if (strict && (minus ? "-" : "") + std::string(digits.substr(first)) != written) {
      firn::Die("two texts without zeros in front stand for one id");
    }
  }
  return 0;
}
