#include "registry/claim/slot_write.h"

#include <optional>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

using Outcome = SlotWritten::Outcome;

constexpr int kMetaIndex = 0;
constexpr int64_t kReadBackDelayMs = 100;

SlotWritten Ended(Outcome outcome, std::string reason) { return {outcome, std::move(reason)}; }

// A change as one multi, with the positions of its writes.
struct Bundle {
  std::vector<Write> writes{};
  int set = 0;  // the record's last set
  int past = -1;
  int era = 0;
};

Bundle BundleOf(const SlotChange& change, const std::optional<Write>& past) {
  Bundle bundle;
  std::vector<Write>& writes = bundle.writes;
  writes.reserve(7);
  writes.push_back(Write::Check(kMetaPath, change.over.meta_version));
  bundle.set = static_cast<int>(AddSet(writes, SlotPath(change.over.slot),
                                       FormatSlotRecord(change.record), change.over.version));
  if (past.has_value()) {
    bundle.past = static_cast<int>(writes.size());
    writes.push_back(*past);
  }
  using Live = SlotChange::Live;
  if (change.live == Live::kReplace || change.live == Live::kErase) {
    writes.push_back(Write::Erase(LivePath(change.over.slot), Write::kAnyVersion));
  }
  if (change.live == Live::kReplace || change.live == Live::kCreate) {
    const LiveMark mark{.endpoint = change.endpoint, .nonce = change.record.nonce};
    writes.push_back(
        Write::Create(LivePath(change.over.slot), FormatLiveMark(mark), Lifetime::kEphemeral));
  }
  bundle.era = static_cast<int>(writes.size());
  writes.push_back(EraCheck(change.over.era));
  return bundle;
}

// 6
std::optional<Write> WriteOfPast(const SlotChange& change, const Result<Node>& past) {
  const std::string path = PastPath(change.over.slot);
  const bool missing = past.code() == Code::kNotFound;
  if (!past.ok() && !missing) return std::nullopt;
  PastHolders holders;
  if (!missing) holders = PastHolders::Parse(past->data).value_or({});
  for (const PastHolder& holder : change.ended) holders.Add(holder);
  return missing ? Write::Create(path, holders.Text(), Lifetime::kPersistent)
                 : Write::Set(path, holders.Text(), past->stat.version);
}

// 1
SlotWritten JudgeDone(const SlotChange& change, const NodeStat& stat) {
  if (!Follows(change.over.version, stat.version) ||
      stat.created_zxid != change.over.created_zxid) {
    return Ended(Outcome::kOther, "the record was re-created before it was set");
  }
  return {.outcome = Outcome::kApplied,
          .version = stat.version,
          .bound = change.record.bound,
          .others = change.record.others,
          .registry_clock = stat.modified};
}

SlotWritten JudgeRefused(const Bundle& sent, const Written& answer) {
  const std::string& why = answer.status.message();
  if (answer.failed == sent.era) {
    return Ended(Outcome::kOther, Cat("the cluster was re-created or restored: ", why));
  }
  if (answer.failed == kMetaIndex) {
    return Ended(Outcome::kOther, Cat("the cluster's root node has changed: ", why));
  }
  if (answer.failed <= sent.set) {
    return Ended(Outcome::kOther, Cat("the slot's record has changed: ", why));
  }
  const bool missing = answer.status.code() == Code::kNotFound;
  return Ended(missing ? Outcome::kLiveMissing : Outcome::kLiveExists, why);
}

bool SameCluster(const SlotChange& change, const std::optional<Node>& meta) {
  if (!meta.has_value() || meta->stat.version != change.over.meta_version) return false;
  const Result<ClusterMeta> cluster = ParseMeta(meta->data);
  return cluster.ok() && cluster->uuid == change.over.uuid && cluster->era == change.over.era &&
         !cluster->frozen && cluster->floor <= change.record.since;
}

// 2. Empty: it is not applied, and may be sent again.
std::optional<SlotWritten> JudgeReadBack(const SlotChange& change, const std::optional<Node>& meta,
                                         const std::optional<Node>& record) {
  if (!SameCluster(change, meta)) {
    return Ended(Outcome::kOther, "the cluster's root node has changed");
  }
  if (!record.has_value() || record->stat.created_zxid != change.over.created_zxid ||
      IsOlder(record->stat.version, change.over.version)) {
    return Ended(Outcome::kOther, "the slot's record is gone or was re-created");
  }
  const Result<SlotRecord> stands = ParseSlotRecord(record->data);
  if (!stands.ok()) return Ended(Outcome::kOther, stands.status().message());
  if (record->stat.version == change.over.version) {
    const bool as_read = stands->nonce == change.over.nonce && stands->word == change.over.word &&
                         stands->bound == change.over.bound;
    if (as_read) return std::nullopt;
    return Ended(Outcome::kOther, "the slot's record has other contents under the same version");
  }
  const bool ours = stands->nonce == change.record.nonce && stands->word == change.record.word;
  if (!ours || stands->bound < change.record.bound) {
    return Ended(Outcome::kOther, "the slot's record belongs to another process");
  }
  const bool lowers = change.record.bound < change.over.bound;
  if (lowers && stands->bound > change.record.bound) {
    return Ended(Outcome::kOther, "an earlier renewal was applied");
  }
  return SlotWritten{.outcome = Outcome::kApplied,
                     .version = record->stat.version,
                     .bound = stands->bound,
                     .others = stands->others,
                     .registry_clock = record->stat.modified};
}

// Reads root node and record, with retries; `tries` counts all retries of this change.
Task<Result<Nodes>> ReadBack(AsyncRegistry* registry, Entropy* entropy, Slot slot, int* tries) {
  const std::vector<std::string> paths{kMetaPath, SlotPath(slot)};
  for (;;) {
    ++*tries;
    Result<Nodes> nodes = co_await registry->ReadSynced(paths);
    if (nodes.ok() || *tries >= kReadBacksMax) co_return nodes;
    const auto delay_ms = static_cast<uint64_t>(kReadBackDelayMs << *tries);
    const BootMs later = registry->now() + Milliseconds(delay_ms / 2 + entropy->Below(delay_ms));
    co_await registry->Until(later);
  }
}

}  // namespace

SlotRecord RecordOf(const ClaimOptions& options, const Nonce& nonce, WallMs since,
                    const std::string& others) {
  const ClaimantIdentity& self = options.identity;
  return {.nonce = nonce,
          .owner = self.owner,
          .since = since,
          .host = self.host,
          .pid = self.pid,
          .build = self.build,
          .lease = options.lease,
          .others = others};
}

std::vector<PastHolder> EndedHolders(PastHolder recorded, const std::vector<OfflineHolder>& offline,
                                     const ClaimantIdentity& self, WallMs from) {
  std::vector<PastHolder> ended;
  const WallMs bound = recorded.bound();
  const auto end = [&](WallMs at) {
    PastHolder holder = recorded.Until(at);
    if (holder.is_needed()) ended.push_back(std::move(holder));
  };
  for (const OfflineHolder& next : offline) {
    if (next.first <= recorded.first) continue;  // the record names it, or a later one
    end(next.first);
    recorded = {self.owner, self.host, next.pid, next.first, bound};
  }
  end(from);
  return ended;
}

Task<SlotWritten> WriteSlot(AsyncRegistry* registry, Entropy* entropy, SlotChange change) {
  const std::string path = PastPath(change.over.slot);
  std::optional<Write> past_write;
  bool past_changed = !change.ended.empty();
  bool unknown = false;  // an earlier send may have been applied, or may still be
  int read_backs = 0;
  for (int sends = 0; sends < kSendsMax;) {
    if (registry->session() != change.session) {  // 3
      co_return Ended(unknown ? Outcome::kUnknown : Outcome::kNotApplied,
                      "the session has changed");
    }
    if (std::exchange(past_changed, false)) {
      Result<Node> past = co_await registry->Read(path);
      if (registry->session() != change.session) continue;
      if (past.code() == Code::kUnavailable || past.code() == Code::kUnknown) {
        co_return Ended(Outcome::kNotApplied, "the slot's past: " + past.status().message());
      }
      past_write = WriteOfPast(change, past);
    }
    ++sends;
    const Bundle bundle = BundleOf(change, past_write);
    Written answer = co_await registry->Multi(bundle.writes);
    switch (answer.fate) {
      case Written::Fate::kDone:
        co_return JudgeDone(change, answer.stats.at(static_cast<size_t>(bundle.set)));
      case Written::Fate::kUnknown:
        unknown = true;
        break;
      case Written::Fate::kNotSent:
        if (!unknown) co_return Ended(Outcome::kNotApplied, answer.status.message());
        break;
      case Written::Fate::kRefused:
        // An earlier send may have been applied and have caused this refusal.
        if (unknown) break;
        if (answer.failed != bundle.past) co_return JudgeRefused(bundle, answer);
        past_write.reset();
        past_changed = sends == 1;
        continue;
    }
    Result<Nodes> nodes = co_await ReadBack(registry, entropy, change.over.slot, &read_backs);
    if (!nodes.ok()) co_return Ended(Outcome::kUnknown, "no answer");
    std::optional<SlotWritten> ended = JudgeReadBack(change, (*nodes)[0], (*nodes)[1]);
    if (ended.has_value()) co_return *std::move(ended);
  }
  co_return Ended(Outcome::kUnknown, "no answer, and not applied yet");
}

}  // namespace firn
