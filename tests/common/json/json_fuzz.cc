// Parses arbitrary bytes as JSON: refused with a printable reason, or written in a form that does
// not change when it is parsed and written again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/utf8.h"
#include "common/json/json.h"
#include "common/json/json_object.h"

namespace {

constexpr size_t kBytesMax = 64 << 10;

void Check(bool holds, std::string_view what) {
  if (!holds) firn::Die(what);
}

void TryDocument(std::string_view text) {
  const firn::Result<firn::Json> json = firn::ParseJson(text, kBytesMax);
  if (!json.ok()) {
    Check(firn::IsPrintableUtf8(json.status().message()), "the reason is not printable");
    return;
  }
  const std::string written = firn::JsonText(*json);
  const firn::Result<firn::Json> again = firn::ParseJson(written, written.size());
  Check(again.ok() && firn::JsonText(*again) == written, "reads otherwise when written");
}

void TryMembers(std::string_view text) {
  firn::JsonReader read(text, kBytesMax);
  std::string name;
  int64_t number = 0;
  std::string others;
  if (!read.Text("name", name).Number("number", number, 0).Others(others).status().ok()) return;
  const auto write = [&] {
    return firn::JsonWriter().Text("name", name).Number("number", number).Others(others).Done();
  };
  const std::string written = write();
  firn::JsonReader again(written, kBytesMax);
  Check(again.Text("name", name).Number("number", number, 0).Others(others).status().ok(),
        "what is written does not read");
  Check(write() == written, "written otherwise the second time");
}

void TryText(std::string_view text) {
  std::string quoted;
  firn::AppendJsonText(quoted, text);
  Check(quoted == firn::JsonText(text), "two ways to write one text");
  Check(firn::ParseJson("{\"a\":" + quoted + "}", quoted.size() + 6).ok(), "a text that is none");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  TryDocument(text);
  TryMembers(text);
  TryText(text);
  return 0;
}
