#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "common/time/clock.h"
#include "registry/operate/auditor.h"
#include "registry/owners/candidates.h"
#include "registry/owners/owner_records.h"

namespace firn {
namespace {

// Maximum time without an owner before a partition is reported, by the registry's clock.
constexpr Milliseconds kPatience = 2 * Beat::kWindowMax;
// Maximum by the auditor's own clock, which may be wrong.
constexpr Milliseconds kPatienceHere = std::chrono::minutes(1);

// An owner renews its beat within this time.
constexpr Milliseconds kLookAgain = Beat::kWindowMax / 2;

constexpr char kStart[] =
    "start a server of this cluster; if some run, check that they reach each other's --advertise "
    "address";

// Why a partition has no owner, and since when.
struct Vacancy {
  std::string why;
  WallMs since;
  std::string fix = kStart;
};

using Beats = std::map<Nonce, Result<Node>>;

// One reading of partitions, then of all beats.
struct Look {
  std::vector<Result<Node>> partitions;
  Beats beats;

  // Returns the time of the newest node.
  WallMs Newest() const {
    WallMs newest;
    for (const Result<Node>& node : partitions)
      if (node.ok()) newest = std::max(newest, node->stat.modified);
    for (const auto& [tenure, node] : beats)
      if (node.ok()) newest = std::max(newest, node->stat.modified);
    return newest;
  }
};

// Returns whether the node was neither created, set nor erased between two readings.
bool IsSame(const Result<Node>& a, const Result<Node>& b) {
  return a.ok() == b.ok() && (!a.ok() || (a->stat.version == b->stat.version &&
                                          a->stat.created_zxid == b->stat.created_zxid));
}

// Fails if the registry did not answer.
Status Answered(const Result<Node>& node) {
  const bool answered =
      node.ok() || node.code() == Code::kNotFound || node.code() == Code::kCorrupt;
  return answered ? Status() : node.status();
}

Vacancy Unreadable(const std::string& path, const std::string& why) {
  return {why, WallMs(), Cat("delete ", path, " and the node below it; the runbook shows how")};
}

// For a partition with an owner, `since` is the time of the owner's last renewal. `wanted` is the
// time at which the first tag of the partition was defined.
Vacancy VacancyOf(size_t partition, const Result<Node>& node, const Beats& beats, WallMs wanted) {
  if (node.code() == Code::kNotFound) return {"no server has owned them yet", wanted};
  const Result<PartitionOwner> owner = node.ok() ? ParsePartitionOwner(node->data) : node.status();
  if (!owner.ok()) return Unreadable(PartitionPath(partition), owner.status().message());
  const WallMs since = node->stat.modified;
  if (owner->tenure.zero()) return {"their last owner has handed over", since};
  const auto found = beats.find(owner->tenure);
  if (found == beats.end() || found->second.code() == Code::kNotFound) {
    return {Cat("the beat of their owner ", owner->address, " is missing"), since};
  }
  const Result<Node>& read = found->second;
  const Result<Beat> beat = read.ok() ? ParseBeat(read->data) : read.status();
  if (!beat.ok()) return Unreadable(BeatPath(owner->tenure), beat.status().message());
  return {Cat("their owner ", owner->address,
              beat->ended ? " has stopped owning" : " no longer renews its beat"),
          read->stat.modified};
}

Result<Beats> ReadBeats(BlockingCoordinator& registry) {
  const auto names = registry.List(kBeatsPath);
  if (names.code() == Code::kNotFound) return Beats();
  FIRN_TRY(names.status());
  std::vector<Nonce> tenures;
  std::vector<std::string> paths;
  for (const std::string& name : *names) {
    const Result<Nonce> tenure = Nonce::Parse(name);
    if (!tenure.ok()) continue;
    tenures.push_back(*tenure);
    paths.push_back(BeatPath(*tenure));
  }
  const std::vector<Result<Node>> nodes = registry.ReadAll(paths);
  Beats beats;
  for (size_t i = 0; i < nodes.size(); ++i) {
    FIRN_TRY(Answered(nodes[i]));
    beats.emplace(tenures[i], nodes[i]);
  }
  return beats;
}

// Returns whether the partition's owner has renewed its beat between two readings.
bool HasRenewed(const Result<Node>& partition, const Beats& before, const Beats& after) {
  const Result<PartitionOwner> owner =
      partition.ok() ? ParsePartitionOwner(partition->data) : partition.status();
  if (!owner.ok()) return false;
  const auto first = before.find(owner->tenure), second = after.find(owner->tenure);
  return first != before.end() && second != after.end() && !IsSame(first->second, second->second);
}

// Returns the servers that renew a beat and cannot reach the partition's owner, which renews one,
// too, separated by commas. `newest`: the registry's time.
std::string CutOffFromOwner(const Result<Node>& partition, const Beats& beats, WallMs newest) {
  const Result<PartitionOwner> owner =
      partition.ok() ? ParsePartitionOwner(partition->data) : partition.status();
  std::string servers;
  if (!owner.ok() || owner->tenure.zero()) return servers;
  const auto own = beats.find(owner->tenure);
  if (own == beats.end() || !own->second.ok()) return servers;
  if (newest - own->second->stat.modified >= kLookAgain) return servers;  // it may have ended
  for (const auto& [tenure, node] : beats) {
    const Result<Beat> beat = node.ok() ? ParseBeat(node->data) : node.status();
    if (!beat.ok() || beat->ended || newest - node->stat.modified >= kPatience) continue;
    if (!Lists(beat->unreachable, owner->address)) continue;
    servers += (servers.empty() ? "" : ", ") + beat->address;
  }
  return servers.empty() ? servers : Cat(servers, " cannot reach ", owner->address);
}

// Returns the partition with the owner that its node names, unless its tenure has ended.
AuditedPartition NamedOwner(size_t partition, std::vector<std::string> tags,
                            const Result<Node>& node, const Beats& beats) {
  AuditedPartition named{.partition = partition, .tags = std::move(tags)};
  const Result<PartitionOwner> owner = node.ok() ? ParsePartitionOwner(node->data) : node.status();
  if (!owner.ok()) return named;
  const auto found = beats.find(owner->tenure);
  if (found == beats.end() || !found->second.ok()) return named;
  const Result<Beat> beat = ParseBeat(found->second->data);
  if (!beat.ok() || beat->ended) return named;
  named.owner = owner->address;
  named.since = node->stat.modified;
  return named;
}

std::string TagsText(const std::vector<std::string>& tags) {
  const std::string first = "tag " + Quoted(tags.front());
  return tags.size() == 1 ? first : Cat(first, " and ", tags.size() - 1, " more");
}

}  // namespace

void Auditor::NoteOwned(const StoredTag& stored) {
  if (stored.tag().buffer != TagBuffer::kOwner || stored.tag().disabled) return;
  auto& [tags, since] = owned_[PartitionOf(stored.tag().name)];
  since = tags.empty() ? stored.stat.modified : std::min(since, stored.stat.modified);
  tags.push_back(stored.tag().name);
}

Status Auditor::ReadOwners() {
  if (owned_.empty() || audit_.providers.empty() || audit_.meta->frozen) return {};
  std::vector<std::string> paths;
  for (const auto& [partition, owned] : owned_) paths.push_back(PartitionPath(partition));
  const auto look = [&]() -> Result<Look> {
    Look seen{.partitions = registry_.ReadAll(paths), .beats = {}};
    for (const Result<Node>& node : seen.partitions) FIRN_TRY(Answered(node));
    FIRN_ASSIGN(seen.beats, ReadBeats(registry_));
    return seen;
  };
  FIRN_ASSIGN(const Look first, look());
  const WallMs newest = first.Newest();
  std::optional<Look> second;
  size_t at = 0;
  for (const auto& [partition, owned] : owned_) {
    const Result<Node>& node = first.partitions[at++];
    audit_.partitions.push_back(NamedOwner(partition, owned.tags, node, first.beats));
    if (const std::string cut = CutOffFromOwner(node, first.beats, newest); !cut.empty()) {
      Fault(Urgency::kRefused, Cat(cut, ", the owner of the numbers of ", TagsText(owned.tags)),
            "check that each server reaches the --advertise address of the others");
    }
    const Vacancy found = VacancyOf(partition, node, first.beats, owned.since);
    if (newest - found.since < kPatience && now_ - found.since < kPatienceHere) continue;
    if (!second) {  // a clock may be wrong, and an owner may just have changed
      SleepFor(kLookAgain);
      FIRN_ASSIGN(second, look());
    }
    if (!IsSame(node, second->partitions[at - 1]) || HasRenewed(node, first.beats, second->beats)) {
      continue;
    }
    audit_.partitions.back().owner.clear();
    Fault(Urgency::kRefused,
          Cat("no server owns the numbers of ", TagsText(owned.tags), ": ", found.why), found.fix);
  }
  return {};
}

}  // namespace firn
