#include "registry/operate/restore_memory.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/base/cat.h"
#include "common/base/fnv.h"
#include "common/base/hex.h"
#include "common/base/parse.h"
#include "common/json/json.h"
#include "common/json/json_object.h"

namespace firn {
namespace {

constexpr size_t kValuesMax = 10'000;

// How the values of two runs are joined. Of all other flags the newer value stays.
enum class Join { kHighest, kEarliest, kAll };
constexpr std::pair<std::string_view, Join> kJoins[] = {
    {"--bound_ms=", Join::kAll},        {"--retire=", Join::kAll},
    {"--reserve=", Join::kAll},         {"--tag_high=", Join::kAll},
    {"--workers=", Join::kHighest},     {"--claim_window_ms=", Join::kHighest},
    {"--skew_max_ms=", Join::kHighest}, {"--tag_gap=", Join::kHighest},
    {"--ids_since=", Join::kEarliest}};

int64_t NumberIn(std::string_view text) { return ParseNumberWithin<int64_t>(text, 0).value_or(0); }

// Adds the items of a list, separated by commas, that `list` lacks.
void AddItems(std::string_view items, std::string& list) {
  while (!items.empty()) {
    const std::string_view item = items.substr(0, items.find(','));
    items.remove_prefix(std::min(items.size(), item.size() + 1));
    if (Cat(",", list, ",").find(Cat(",", item, ",")) != std::string::npos) continue;
    list += Cat(list.empty() ? "" : ",", item);
  }
}

void JoinValue(std::string_view name, std::string_view earlier, std::string& value) {
  const auto* const rule =
      std::ranges::find(kJoins, name, [](const auto& one) { return one.first; });
  if (rule == std::end(kJoins)) return;
  const bool is_less =
      rule->second == Join::kHighest ? NumberIn(value) < NumberIn(earlier) : earlier < value;
  if (rule->second == Join::kAll) {
    AddItems(earlier, value);
  } else if (is_less) {
    value = earlier;
  }
}

// Both begin with the same `TAG=`, of `size` bytes.
void JoinTag(size_t size, std::string_view earlier, std::string& word) {
  const auto split = [size](std::string_view text) {
    const size_t comma = std::min(text.find(',', size), text.size());
    return std::pair(text.substr(size, comma - size), text.substr(comma));
  };
  const auto [start, fields] = split(word);
  const auto [earlier_start, earlier_fields] = split(earlier);
  word =
      Cat(word.substr(0, size), NumberIn(start) < NumberIn(earlier_start) ? earlier_start : start,
          fields.empty() ? earlier_fields : fields);
}

// Joins each word of `earlier` to the one of the same name, the part up to `=`, or adds it.
template <typename JoinBoth>
void JoinWords(const std::vector<std::string>& earlier, std::vector<std::string>& words,
               const JoinBoth& join) {
  for (const std::string& one : earlier) {
    const std::string name = one.substr(0, one.find('=') + 1);
    const auto same = std::ranges::find_if(
        words, [&name](const std::string& word) { return word.starts_with(name); });
    if (same == words.end()) {
      words.push_back(one);
    } else {
      join(name, one, *same);
    }
  }
}

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
  read.Text("era", era)
      .Text("replaced", memory.replaced)
      .FlagIfAny("erased", memory.erased)
      .Text("unstored", memory.unstored);
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

std::string RestoreMemory::Digest() const {
  uint64_t digest = kFnvSeed;
  for (const auto* const words : {&flags, &tags}) {
    for (const std::string& word : *words) digest = Fnv1a(word + "\n", digest);
  }
  return ToHex(digest);
}

void RestoreMemory::Join(const RestoreMemory& earlier) {
  if (replaced.empty()) replaced = earlier.replaced;
  erased |= earlier.erased;
  for (const Document& one : earlier.documents) {
    if (!Knows(one.checksum)) documents.push_back(one);
  }
  JoinWords(earlier.flags, flags, [](const auto& name, const auto& one, std::string& word) {
    std::string value = word.substr(name.size());
    JoinValue(name, std::string_view(one).substr(name.size()), value);
    word = name + value;
  });
  JoinWords(earlier.tags, tags, [](const auto& name, const auto& one, std::string& word) {
    JoinTag(name.size(), one, word);
  });
}

bool RestoreMemory::Lacks(const RestoreMemory& earlier) const {
  RestoreMemory joined = *this;
  joined.Join(earlier);
  return joined.flags != flags || joined.tags != tags;
}

bool RestoreMemory::Overlooks(const RestoreMemory& earlier) const {
  return Lacks(earlier) || std::ranges::any_of(earlier.documents, [this](const Document& one) {
           return !Knows(one.checksum);
         });
}

std::string FormatRestoreMemory(const RestoreMemory& memory, const Nonce& era) {
  Json json{{"era", era.text()},          {"replaced", memory.replaced}, {"erased", memory.erased},
            {"documents", Json::array()}, {"flags", memory.flags},       {"tags", memory.tags},
            {"unstored", memory.unstored}};
  for (const auto& [path, checksum, taken] : memory.documents) {
    json["documents"].push_back({{"path", path}, {"checksum", checksum}, {"taken_ms", taken.ms()}});
  }
  std::string text = JsonText(json);
  if (text.size() <= kRestoreBytesMax || !memory.unstored.empty()) return text;
  RestoreMemory shorter = memory;
  shorter.unstored = memory.Digest();
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
  RestoreMemoryAsRead read{{}, true, node->stat.version};
  std::string era;
  const Result<RestoreMemory> memory = Parse(node->data, era);
  if (memory.ok() && root.frozen && era == root.era.text()) read.memory = *memory;
  return read;
}

}  // namespace firn
