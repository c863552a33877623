#include "registry/cluster/first_use.h"

#include <optional>
#include <utility>

#include "common/json/json_object.h"
#include "registry/cluster/cluster_settings.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/cluster/tag_node.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

constexpr size_t kCountBytesMax = 8192;

TagDefinition NewCounter(std::string name, int64_t start) {
  TagDefinition tag{.name = std::move(name), .strategy = "segment", .buffer = TagBuffer::kOwner};
  if (start == 1) return tag;
  tag.start = start;
  tag.high = start;  // as TagStore::Create does: numbers may have been issued before
  return tag;
}

bool IsDefined(const std::string& name, const std::optional<Node>& tag) {
  return tag && !ReadTagNode(name, tag->data).value_or({}).deleted;
}

bool IsUnguarded(const std::optional<Node>& node) {
  return node && node->stat.version == kUnguardedVersion;
}

void AddNode(std::vector<Write>& writes, const std::string& path, const std::string& data,
             const std::optional<Node>& before) {
  if (before) {
    AddSet(writes, path, data, before->stat.version);
  } else {
    writes.push_back(Write::Create(path, data, Lifetime::kPersistent));
  }
}

}  // namespace

Result<int64_t> ReadCountersCreated(const Result<Node>& node) {
  if (node.code() == Code::kNotFound) return int64_t{0};
  if (!node.ok()) return node.status();
  int64_t created = 0;
  JsonReader read(node->data, kCountBytesMax);
  read.Number("created", created, 0);
  FIRN_TRY(read.status().WithContext("the number of created counters"));
  return created;
}

Task<FirstUse> ReadFirstUse(AsyncRegistry* registry, std::string name) {
  using State = FirstUse::State;
  // If the tag exists, its node alone shows that.
  const std::vector<std::string> first{TagPath(name)};
  const Result<Nodes> defined = co_await registry->ReadSynced(first);
  if (!defined.ok()) co_return FirstUse{};
  if (IsDefined(name, defined->front())) co_return FirstUse{State::kExists};
  const std::vector<std::string> paths{TagPath(name), kSettingsPath, kMetaPath, kCountersPath};
  const Result<Nodes> nodes = co_await registry->ReadSynced(paths);
  if (!nodes.ok()) co_return FirstUse{};
  const std::optional<Node>& tag = nodes->at(0);
  const std::optional<Node>& beside = nodes->at(1);
  const std::optional<Node>& root = nodes->at(2);
  const std::optional<Node>& count = nodes->at(3);
  if (IsDefined(name, tag)) co_return FirstUse{State::kExists};
  if (!beside) co_return FirstUse{State::kUndefined};
  const Result<ClusterSettings> settings = ParseClusterSettings(beside->data);
  if (!settings.ok() || !root) co_return FirstUse{};
  const std::optional<CounterSetting>& counters = settings->counters;
  if (!counters || !counters->Covers(name)) co_return FirstUse{State::kUndefined};
  const Result<ClusterMeta> meta = ParseMeta(root->data);
  const Result<int64_t> created =
      ReadCountersCreated(count ? Result<Node>(*count) : Result<Node>(NotFound("")));
  const bool guarded =
      !IsUnguarded(tag) && !IsUnguarded(beside) && !IsUnguarded(root) && !IsUnguarded(count);
  const bool usable =
      meta.ok() && created.ok() && !meta->frozen && guarded && meta->default_strategy.empty();
  if (!usable) co_return FirstUse{};
  if (counters->era != meta->era) co_return FirstUse{State::kOtherEra};
  if (*created >= kCountersMax) co_return FirstUse{State::kFull};
  const Result<std::string> data = WriteTagNode({NewCounter(name, counters->start)});
  if (!data.ok()) co_return FirstUse{State::kUndefined};
  FirstUse use{State::kMissing,
               {Write::Check(kMetaPath, root->stat.version),
                Write::Check(kSettingsPath, beside->stat.version)}};
  AddNode(use.writes, kCountersPath, JsonWriter().Number("created", *created + 1).Done(), count);
  AddNode(use.writes, TagPath(name), *data, tag);
  use.writes.push_back(EraCheck(meta->era));
  co_return use;
}

}  // namespace firn
