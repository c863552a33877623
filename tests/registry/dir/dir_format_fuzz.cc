#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "registry/dir/dir_format.h"
#include "registry/dir/dir_place.h"

// Parses arbitrary bytes as a file of a directory registry. A parsed value is equal after it is
// written and parsed again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto node = firn::ParseNode(bytes);
  if (node.ok() && firn::RenderNode(node->name, node->node) != bytes) firn::Die("another node");
  const auto journal = firn::ParseJournal(bytes);
  if (journal.ok() && *firn::ParseJournal(firn::RenderJournal(*journal)) != *journal) {
    firn::Die("another journal");
  }
  const auto identity = firn::ParseIdentity(std::string(bytes));
  if (identity.ok() && *firn::ParseIdentity(firn::RenderIdentity(*identity)) != *identity) {
    firn::Die("another identity");
  }
  const std::string name = firn::NameOfFolder(bytes);
  if (!name.empty() && firn::FolderOfName(name) != bytes) firn::Die("another name");
  return 0;
}
