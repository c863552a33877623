#include "registry/claim/inspection.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/time/civil_time.h"
#include "registry/cluster/freeze.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

using Verdict = Finding::Verdict;

// Sets the final verdict. Always false.
bool Is(Finding& finding, Verdict verdict, std::string reason) {
  finding.verdict = verdict;
  finding.reason = std::move(reason);
  return false;
}

// Fills in the record. False if the record alone decides the verdict.
bool JudgeRecord(Finding& finding, const Tenure::Terms& held, const std::optional<Node>& node) {
  if (!node.has_value()) return Is(finding, Verdict::kLost, "the slot's record is gone");
  finding.version = node->stat.version;
  const Result<SlotRecord> record = ParseSlotRecord(node->data);
  finding.record_read = record.ok();
  if (record.ok()) finding.record = *record;
  if (node->stat.created_zxid != held.created_zxid) {
    return Is(finding, Verdict::kForeign, "the slot's record was deleted and re-created");
  }
  if (IsOlder(node->stat.version, held.version)) {
    return Is(finding, Verdict::kLost, "the slot's record is older than what was acknowledged");
  }
  if (!record.ok()) return Is(finding, Verdict::kForeign, record.status().message());
  if (record->nonce != held.nonce) {
    return Is(finding, Verdict::kForeign,
              record->nonce.zero() ? std::string("the slot was released by another process")
                                   : "the slot is now claimed by " + record->owner);
  }
  if (!held.Knows(record->word)) {
    return Is(finding, Verdict::kTwin,
              "a copy of this process runs elsewhere and has renewed the same claim: its memory or "
              "its machine was copied, or restored to an earlier state");
  }
  if (record->bound < held.bound) {
    return Is(finding, Verdict::kLost, "the slot's bound is lower than what was acknowledged");
  }
  return true;
}

// A restore that took our bound into account: claims under its floor begin at or above that bound,
// and the record shows no other holder below it. A record that went back may still be ours.
bool IsRestored(const Finding& finding, const Tenure::Terms& held) {
  if (!finding.record_read || finding.meta->uuid != held.uuid || finding.meta->floor < held.bound) {
    return false;
  }
  const SlotRecord& record = finding.record;
  if (record.nonce == held.nonce) {
    return finding.verdict != Verdict::kForeign && held.Wrote(record, finding.version);
  }
  return record.nonce.zero() || record.since >= held.bound;
}

}  // namespace

Finding Judge(const Tenure::Terms& held, const std::optional<Node>& meta,
              const std::optional<Node>& record) {
  Finding finding;
  const bool ours = JudgeRecord(finding, held, record);
  if (!meta.has_value()) {
    Is(finding, Verdict::kLost, "the cluster's root node is gone");
    return finding;
  }
  Result<ClusterMeta> cluster = ParseMeta(meta->data);
  if (cluster.code() == Code::kInvalid && ours && !IsOlder(meta->stat.version, held.meta_version)) {
    // A format that this program does not support: the cluster was upgraded.
    Is(finding, Verdict::kMetaMoved, cluster.status().message());
    return finding;
  }
  if (!cluster.ok()) {
    // No server can claim under this root node or freeze it, so the holder has to stop.
    Is(finding, Verdict::kForeign, cluster.status().message());
    return finding;
  }
  finding.meta = std::move(cluster).value();
  finding.meta_version = meta->stat.version;
  finding.meta_set_at = meta->stat.modified;
  const bool root_went_back = IsOlder(meta->stat.version, held.meta_version);
  if ((!ours || root_went_back) && IsRestored(finding, held)) {
    Is(finding, Verdict::kRestored, "the cluster was restored");
  } else if (finding.meta->uuid != held.uuid) {
    Is(finding, Verdict::kLost, "another cluster has replaced this one");
  } else if (root_went_back) {
    Is(finding, Verdict::kLost, "the cluster's root node is older than what was acknowledged");
  } else if (ours && meta->stat.version != held.meta_version) {
    Is(finding, Verdict::kMetaMoved,
       finding.meta->frozen ? AskForRestore("the cluster is frozen: " + finding.meta->reason)
                            : std::string("the cluster was restored or changed"));
  } else if (ours && finding.version == kUnguardedVersion) {
    Is(finding, Verdict::kMetaMoved, UnguardedVersionFault("the slot's record"));
  } else if (ours) {
    Is(finding, Verdict::kOurs, {});
  }
  return finding;
}

Task<Finding> Inspect(AsyncRegistry* registry, Tenure::Terms held) {
  // The root node last: a record that a restore has written is never judged by the floor before it.
  const std::vector<std::string> paths{SlotPath(held.slot), LivePath(held.slot), kMetaPath};
  Result<Nodes> nodes = co_await registry->ReadSynced(paths);
  if (!nodes.ok()) co_return Finding{.reason = nodes.status().message()};
  Finding finding = Judge(held, (*nodes)[2], (*nodes)[0]);
  const std::optional<Node>& live = (*nodes)[1];
  if (live.has_value()) finding.live_session = live->stat.ephemeral_owner;
  co_return finding;
}

namespace {

// The result of comparing a record with a kept bound, without the slot's past.
struct KeptFinding {
  std::string fault{};   // why the record contradicts the bound
  std::string unless{};  // the same, unless the past shows that the claim ended later
};

// A retired slot, and one that cannot be read, are never claimed: only their past can contradict.
KeptFinding CheckKept(const KeptBound& kept, const std::optional<Node>& node, bool same_era) {
  const std::string slot = SlotText(kept.slot);
  if (!node.has_value()) return {.fault = slot + " has no record"};
  const Result<SlotRecord> record = ParseSlotRecord(node->data);
  if (!record.ok() || record->retired) return {};
  if (!same_era) return {.fault = Cat("the floor lies below the bound of ", slot)};
  if (kept.created_zxid != 0 && node->stat.created_zxid != kept.created_zxid) {
    return {.fault = slot + " was deleted and re-created"};
  }
  const std::string fell = record->bound < kept.bound ? Cat("the bound of ", slot, " fell") : "";
  if (kept.claim.zero()) return {.fault = fell};
  if (IsOlder(node->stat.version, kept.version)) {
    return {.fault = Cat("the record of ", slot, " is older than what was acknowledged")};
  }
  // Its release, and the stop of its lease's server, lower the bound.
  const bool lowers = record->nonce.zero() || record->lease.has_value();
  if (record->claim() == kept.claim) {
    return {.fault = lowers && IsOlder(kept.version, node->stat.version) ? std::string() : fell};
  }
  const bool below = record->since < kept.bound;
  return {.unless = below ? Cat(slot, " was claimed below the bound of an earlier claim") : fell};
}

// Returns whether the slot's past shows that the kept claim reached the kept version. If so, no
// write was lost, and its present bound does not matter.
bool EndedLater(const KeptBound& kept, const PastHolders& past) {
  return std::ranges::any_of(past.holders(), [&](const PastHolder& holder) {
    return holder.nonce == kept.claim && holder.version && !IsOlder(*holder.version, kept.version);
  });
}

// A claim that has ended since began below the bound, at a version that the kept claim had.
bool ClaimedBelow(const KeptBound& kept, const PastHolders& past) {
  return std::ranges::any_of(past.holders(), [&](const PastHolder& holder) {
    return !holder.nonce.zero() && holder.first < kept.bound && holder.version &&
           !IsOlder(*holder.version, kept.version);
  });
}

}  // namespace

Task<Result<std::string>> FindKeptFault(AsyncRegistry* registry, KeptBound kept, bool same_era) {
  const std::vector<std::string> slot{SlotPath(kept.slot)};
  Result<Nodes> nodes = co_await registry->ReadSynced(slot);
  if (nodes.code() == Code::kCorrupt) co_return std::string();  // no server can claim it
  if (!nodes.ok()) co_return nodes.status();
  KeptFinding found = CheckKept(kept, nodes->front(), same_era);
  if (!found.fault.empty() || kept.claim.zero()) co_return found.fault;
  const std::string path = PastPath(kept.slot);
  Result<Node> node = co_await registry->Read(path);
  if (!node.ok() && node.code() != Code::kNotFound && node.code() != Code::kCorrupt) {
    co_return node.status();
  }
  PastHolders past;
  if (node.ok()) past = PastHolders::Parse(node->data).value_or({});
  if (EndedLater(kept, past)) co_return std::string();
  if (found.unless.empty() && ClaimedBelow(kept, past)) {
    co_return SlotText(kept.slot) + " was claimed below the bound of an earlier claim";
  }
  co_return found.unless;
}

Task<Result<std::string>> FindLostBound(AsyncRegistry* registry, KeptBounds kept,
                                        Tenure::Terms root, WallMs passed) {
  for (const KeptBound& one : kept.bounds) {
    const bool same_era = one.era == root.era;
    if (one.bound <= passed || (!same_era && root.floor >= one.bound)) continue;
    const KeptBound asked = one;
    Result<std::string> fault = co_await FindKeptFault(registry, asked, same_era);
    if (!fault.ok() || fault->empty()) {
      if (!fault.ok()) co_return fault;
      continue;
    }
    co_return Cat(*fault, ", but its ids are promised to a lease until ", FormatRfc3339(one.bound));
  }
  co_return std::string();
}

namespace {

// Judges a slot's record after the freeze: it must not contain another process's claim.
Status JudgeFrozen(const Tenure::Terms& held, const std::optional<Node>& node) {
  if (!node.has_value()) return {};
  const Result<SlotRecord> record = ParseSlotRecord(node->data);
  const bool known = record.ok() && held.Wrote(*record, node->stat.version);
  if (known || (record.ok() && record->nonce.zero())) return {};
  return Conflict("another process's claim is in the slot");
}

}  // namespace

Task<Status> FreezeAndInspect(AsyncRegistry* registry, Tenure::Terms held, std::string why) {
  const FreezeOrder order{std::move(why), [bound = held.bound](const ClusterMeta& meta) {
                            return meta.floor >= bound;
                          }};
  for (int tries = 1;; ++tries) {
    Result<Freeze> frozen = co_await TryToFreeze(registry, order);
    if (!frozen.ok()) co_return Unavailable(frozen.status().message());
    if (*frozen != Freeze::kNotYet) break;
    if (tries == kFreezeTriesMax) co_return Unavailable("the freeze was not acknowledged");
  }
  const std::vector<std::string> slot{SlotPath(held.slot)};
  Result<Nodes> nodes = co_await registry->ReadSynced(slot);
  if (!nodes.ok()) co_return nodes.status();
  co_return JudgeFrozen(held, nodes->front());
}

}  // namespace firn
