// Parses arbitrary bytes as the data of a tag's node: refused with a reason, or equal when written
// again.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/utf8.h"
#include "common/tag/tag_name.h"
#include "registry/cluster/tag_node.h"

namespace {

void Check(bool holds, std::string_view what) {
  if (!holds) firn::Die(what);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto name = firn::DecodeTagName(text); name.ok()) {
    Check(firn::DecodeTagName(firn::EncodeTagName(*name)).value() == *name, "a name changes");
  }
  const firn::Result<firn::TagNode> node = firn::ReadTagNode("t", text);
  if (!node.ok()) return Check(firn::IsPrintableUtf8(node.status().message()), "not printable"), 0;
  const firn::Result<std::string> written = firn::WriteTagNode(*node);
  if (!written.ok()) return 0;  // the escaped text exceeds the limit
  Check(*firn::ReadTagNode("t", *written) == *node, "reads otherwise when written");
  return 0;
}
