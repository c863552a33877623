#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "common/id/layout.h"
#include "common/tag/numbers_left.h"
#include "common/tag/obfuscated_end.h"
#include "common/text/dated_numbers.h"
#include "common/text/time_zone.h"
#include "common/time/clock.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/auditor.h"
#include "registry/owners/candidates.h"
#include "registry/owners/owner_records.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

using TagsByName = std::map<std::string, const TagNode*>;

// Empty if the tag's ledger is, or has risen above, what the server saw.
std::string FaultOf(const TagsByName& tags, const std::string& tag, int64_t seen) {
  const auto found = tags.find(tag);
  if (found == tags.end()) return "reports numbers of tag " + Quoted(tag) + ", which is missing";
  const TagNode& node = *found->second;
  if (node.ledger_sum() >= static_cast<uint64_t>(seen) || node.tag.NextBegin() >= seen) return {};
  return Cat("has seen the ledger of tag ", Quoted(tag), " at ", seen, ", but it is at ",
             node.tag.high, ": the registry went back in time");
}

// The UTC date of a day ahead is at or after the current date of every time zone.
std::string DatedAhead(const TagDefinition& tag, WallMs now) {
  const std::optional<DatedNumbers> numbers = tag.Dated();
  if (!numbers || tag.high <= 1) return {};
  const int64_t period = numbers->PeriodOf(tag.high - 1);
  const int64_t latest = numbers->PeriodAt(now + std::chrono::days(1), TimeZone::Utc());
  if (!numbers->IsPeriod(period) || period <= latest) return {};
  return Cat("tag ", Quoted(tag.name), " has numbers dated ", period,
             ", which is in the future: the registry's clock was wrong; the tag keeps this date "
             "until it has come");
}

void NoteObfuscatedEnd(const TagDefinition& tag, const Layout& layout, WallMs now, Audit& audit) {
  const std::optional<WallMs> end = ObfuscatedEnd(tag, layout);
  std::string note = ObfuscatedEndNote(tag, layout, now);
  if (note.empty()) return;
  const bool soon = *end - now < kObfuscatedLeast;
  audit.findings.push_back({soon ? Urgency::kSoon : Urgency::kNote, std::move(note),
                            soon ? "create a tag with a larger obfuscate.width for new ids" : ""});
}

// --- owners --------------------------------------------------------------------------------------

// Maximum time without a renewal before a beat counts as lost, by the registry's clock.
Milliseconds PatienceFor(const Beat& beat) { return 2 * beat.window; }
// Maximum by the auditor's own clock, which may be wrong.
constexpr Milliseconds kPatienceHere = std::chrono::minutes(1);

constexpr char kStart[] =
    "start a server of this cluster; if some run, check that they reach each other's --advertise "
    "address";

// Why a partition has no owner, and since when.
struct Vacancy {
  std::string why;
  WallMs since;
  std::string fix = kStart;
  Milliseconds patience = 2 * Beat::kWindowMax;  // before it is reported
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
  // Returns a time within which each owner renews its beat.
  Milliseconds RenewedWithin() const {
    Milliseconds longest = Beat::kWindowMax;
    for (const auto& [tenure, node] : beats) {
      const Result<Beat> beat = node.ok() ? ParseBeat(node->data) : node.status();
      if (beat.ok() && !beat->ended) longest = std::max(longest, beat->window);
    }
    return longest / 2;
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
          read->stat.modified, kStart, PatienceFor(*beat)};
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
  const Result<Beat> beat_of_owner = ParseBeat(own->second->data);
  if (!beat_of_owner.ok()) return servers;
  const Milliseconds ago = newest - own->second->stat.modified;
  if (ago >= beat_of_owner->window / 2) return servers;  // it may have ended
  for (const auto& [tenure, node] : beats) {
    const Result<Beat> beat = node.ok() ? ParseBeat(node->data) : node.status();
    if (!beat.ok() || beat->ended) continue;
    if (newest - node->stat.modified >= PatienceFor(*beat)) continue;
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

Status Auditor::ReadTags() {
  FIRN_ASSIGN(const TagListing listing, TagStore(registry_).ReadAll());
  for (const std::string& fault : listing.faults) Loss(fault);
  for (const std::string& tag : listing.unreadable) audit_.lost_tags.emplace(tag, 0);
  const Result<Layout> layout = Layout::Parse(audit_.meta ? audit_.meta->layout : "");
  if (audit_.unfinished) audit_.made = MadeTags(listing, audit_.unfinished->plan);
  TagsByName tags;
  for (const StoredTag& stored : listing.tags) {
    const std::string& name = stored.tag().name;
    tags.emplace(name, &stored.node);
    audit_.tags.push_back(stored.tag());
    NoteOwned(stored);
    if (std::string ahead = DatedAhead(stored.tag(), now_); !ahead.empty()) {
      Fault(Urgency::kSoon, std::move(ahead),
            "correct the registry's clock; the date stays until then");
    }
    if (auto note = NoteNumbersLeft(stored.tag(), now_)) {
      Fault(note->none ? Urgency::kRefused : Urgency::kSoon, std::move(note->what),
            std::move(note->fix));
    }
    if (layout.ok()) NoteObfuscatedEnd(stored.tag(), *layout, now_, audit_);
    if (stored.stat.version != kUnguardedVersion) continue;
    Loss(UnguardedVersionFault("the node of tag " + Quoted(name)));
  }
  const std::set<std::string> deleted(listing.deleted.begin(), listing.deleted.end());
  for (const auto& [provider, report] : audit_.providers) {
    for (const auto& [tag, seen] : report.high) {
      if (seen == 0 && deleted.contains(tag)) continue;
      const std::string fault = FaultOf(tags, tag, seen);
      if (fault.empty()) continue;
      Loss(provider.address + " " + fault);
      if (tags.contains(tag)) continue;
      int64_t& known = audit_.lost_tags[tag];
      known = std::max(known, seen);
    }
  }
  return {};
}

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
    const Milliseconds here = std::max(kPatienceHere, found.patience);
    if (newest - found.since < found.patience && now_ - found.since < here) continue;
    if (!second) {  // a clock may be wrong, and an owner may just have changed
      SleepFor(first.RenewedWithin());
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
