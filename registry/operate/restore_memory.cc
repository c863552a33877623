#include "registry/operate/restore_memory.h"

#include <algorithm>

#include "common/json/json.h"
#include "common/json/json_object.h"

namespace firn {
namespace {

constexpr size_t kValuesMax = 10'000;

std::vector<std::string> TextsIn(const Json* list) {
  std::vector<std::string> texts;
  if (list == nullptr || !list->is_array()) return texts;
  for (const Json& text : *list) {
    if (text.is_string()) texts.push_back(text.text());
  }
  return texts;
}

Result<RestoreMemory> Parse(const std::string& text, std::string& era) {
  FIRN_ASSIGN(const Json json, ParseJson(text, kRestoreBytesMax, kValuesMax));
  RestoreMemory memory;
  JsonReader read(json);
  read.Text("era", era).Text("replaced", memory.replaced).FlagIfAny("erased", memory.erased);
  const Json* const documents = read.Find("documents");
  memory.flags = TextsIn(read.Find("flags"));
  memory.tags = TextsIn(read.Find("tags"));
  FIRN_TRY(read.status());
  if (documents == nullptr || !documents->is_array()) return Corrupt("\"documents\" is not a list");
  for (const Json& one : *documents) {
    RestoreMemory::Document document;
    int64_t taken = 0;
    JsonReader member(one);
    member.Text("path", document.path, kRestoreBytesMax)
        .Text("checksum", document.checksum)
        .Number("taken_ms", taken, 0, kRecordTimeMax.ms());
    FIRN_TRY(member.status());
    document.taken = WallMs(taken);
    memory.documents.push_back(std::move(document));
  }
  return memory;
}

}  // namespace

bool RestoreMemory::Knows(const std::string& checksum) const {
  return std::ranges::any_of(documents, [&](const auto& one) { return one.checksum == checksum; });
}

void RestoreMemory::Join(const RestoreMemory& earlier) {
  if (replaced.empty()) replaced = earlier.replaced;
  erased |= earlier.erased;
  for (const Document& one : earlier.documents) {
    if (!Knows(one.checksum)) documents.push_back(one);
  }
  if (!flags.empty() || !tags.empty()) return;
  flags = earlier.flags;
  tags = earlier.tags;
}

std::string FormatRestoreMemory(const RestoreMemory& memory, const Nonce& era) {
  Json json{{"era", era.text()},          {"replaced", memory.replaced}, {"erased", memory.erased},
            {"documents", Json::array()}, {"flags", memory.flags},       {"tags", memory.tags}};
  for (const auto& [path, checksum, taken] : memory.documents) {
    json["documents"].push_back({{"path", path}, {"checksum", checksum}, {"taken_ms", taken.ms()}});
  }
  std::string text = JsonText(json);
  if (text.size() <= kRestoreBytesMax) return text;
  RestoreMemory shorter = memory;  // the arguments are in the operator's shell
  shorter.flags.clear();
  shorter.tags.clear();
  return FormatRestoreMemory(shorter, era);
}

Result<RestoreMemoryAsRead> ReadRestoreMemory(BlockingCoordinator& registry,
                                              const ClusterMeta& root) {
  const Result<Node> node = registry.Read(kRestorePath);
  if (node.code() == Code::kNotFound) return RestoreMemoryAsRead();
  if (node.code() == Code::kCorrupt) return RestoreMemoryAsRead{{}, true};
  if (!node.ok()) return node.status();
  RestoreMemoryAsRead read{{}, true};
  std::string era;
  const Result<RestoreMemory> memory = Parse(node->data, era);
  if (memory.ok() && root.frozen && era == root.era.text()) read.memory = *memory;
  return read;
}

}  // namespace firn
