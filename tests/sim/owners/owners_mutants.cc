#include "tests/sim/owners/owners_mutants.h"

#include <algorithm>
#include <utility>

#include "registry/cluster/slot.h"
#include "registry/owners/owner_records.h"

namespace firn {
namespace {

bool IsBeat(const std::string& path) { return path.starts_with(std::string(kBeatsPath) + "/"); }

bool IsPartition(const std::string& path) {
  return path.starts_with(std::string(kPartitionsPath) + "/");
}

// Returns the purpose of a multi that `Owners` sends.
OwnersSeam::Purpose PurposeOf(const std::vector<Write>& writes) {
  using Purpose = OwnersSeam::Purpose;
  using Kind = Write::Kind;
  const auto any = [&](const auto& is) { return std::any_of(writes.begin(), writes.end(), is); };
  const bool of_partition =
      any([](const Write& write) { return write.kind != Kind::kCheck && IsPartition(write.path); });
  // A server takes a partition only while its tenure has not ended.
  const bool lives = any([](const Write& write) { return write.path.ends_with("/alive"); });
  if (of_partition) return lives ? Purpose::kTakeover : Purpose::kRelease;
  if (!any([](const Write& write) { return write.kind == Kind::kSet && IsBeat(write.path); })) {
    return Purpose::kOther;
  }
  return writes.front().path == kMetaPath ? Purpose::kRenewal : Purpose::kEnd;
}

// Returns a plausible answer to the multi, as if it had succeeded.
WriteOutcome AsIfDone(const std::vector<Write>& writes) {
  WriteOutcome told;
  for (const Write& write : writes) told.stats.emplace_back().version = write.version + 1;
  return told;
}

bool LiesAboutBeats(OwnersMutant mutant) {
  return mutant == OwnersMutant::kNoMargin || IsOfHandOver(mutant);
}

// Returns the beat as the mutant reads it.
std::string Distorted(const std::string& text, OwnersMutant mutant) {
  Result<Beat> beat = ParseBeat(text);
  if (!beat.ok()) return text;
  if (mutant == OwnersMutant::kLeavingUnheeded) beat->leaving = false;
  if (mutant == OwnersMutant::kYoungUnheeded) beat->young = false;
  if (mutant == OwnersMutant::kNoMargin) {
    beat->window = std::max(beat->window * 4 / 5, Beat::kWindowMin);
  }
  return FormatBeat(*beat);
}

}  // namespace

void OwnersSeam::Read(const std::string& path, ReadDone done, Changed changed) {
  if (!watches_) changed = {};
  if (mutant_ == OwnersMutant::kChangeUnheeded && IsPartition(path)) {
    const auto judge = [this, path, done = std::move(done)](Result<Node> node) {
      if (node.ok()) {
        Node& seen = seen_[path];
        const bool same = node->stat.version == seen.stat.version &&
                          node->stat.created_zxid == seen.stat.created_zxid;
        if (same) node->data = seen.data;
        seen = *node;
      }
      done(std::move(node));
    };
    return inner().Read(path, judge, std::move(changed));
  }
  if (!LiesAboutBeats(mutant_) || !IsBeat(path)) {
    return inner().Read(path, std::move(done), std::move(changed));
  }
  const auto lie = [done = std::move(done), mutant = mutant_](Result<Node> node) {
    if (node.ok()) node->data = Distorted(node->data, mutant);
    done(std::move(node));
  };
  inner().Read(path, lie, std::move(changed));
}

// Keeps the number of writes, because `Owners` uses the index of a refused write.
void OwnersSeam::Break(Purpose purpose, std::vector<Write>& writes) const {
  const Write nothing = Write::Check(kMetaPath, Write::kAnyVersion);
  const bool renews = purpose == Purpose::kRenewal, takes = purpose == Purpose::kTakeover;
  for (Write& write : writes) {
    const bool checks = write.kind == Write::Kind::kCheck;
    const bool sets = write.kind == Write::Kind::kSet;
    const bool of_beat = IsBeat(write.path), of_partition = IsPartition(write.path);
    switch (mutant_) {
      case OwnersMutant::kVersionUnheeded:
        if (takes && !checks && of_beat) write.version = Write::kAnyVersion;
        break;
      case OwnersMutant::kBeatOverForeign:
        if (renews && of_beat) write.version = Write::kAnyVersion;
        break;
      case OwnersMutant::kEndOverForeign:
        if (purpose == Purpose::kEnd && of_beat) write.version = Write::kAnyVersion;
        break;
      case OwnersMutant::kRootUnheeded:
        if (renews && checks && !of_partition) write = nothing;
        break;
      case OwnersMutant::kChangeUnheeded:
        if (renews && of_partition) {
          const std::string path = write.path.substr(0, write.path.rfind('/'));
          write = Write::Check(path, seen_.at(path).stat.version);
        }
        break;
      case OwnersMutant::kOwnBeatUnheeded:
        if (takes && checks && of_beat) write = nothing;
        break;
      case OwnersMutant::kPartitionUnheeded:
        if (takes && sets && of_partition) write.version = Write::kAnyVersion;
        if (takes && write.kind == Write::Kind::kErase && of_partition) write = nothing;
        break;
      default:
        break;
    }
  }
}

void OwnersSeam::Multi(std::vector<Write> writes, WriteDone done) {
  const Purpose purpose = PurposeOf(writes);
  const bool renews = purpose == Purpose::kRenewal;
  const std::vector<Write> meant = writes;
  Break(purpose, writes);
  const auto judge = [this, meant, purpose, renews, sent = clock_.Boot(),
                      done = std::move(done)](WriteOutcome outcome) {
    const bool unknown = outcome.status.code() == Code::kUnknown;
    const bool lies = (unknown && mutant_ == OwnersMutant::kUnacknowledgedCounts) ||
                      (outcome.status.ok() && mutant_ == OwnersMutant::kBeatOverForeign);
    if (renews && lies) outcome = AsIfDone(meant);
    if (outcome.status.ok()) {
      if (renews) latency_ = clock_.Boot() - sent;
      if (purpose == Purpose::kTakeover) ++takeovers_;
      if (purpose == Purpose::kRelease) ++releases_;
    }
    done(std::move(outcome));
  };
  inner().Multi(std::move(writes), judge);
}

int64_t OwnersSeam::session() const {
  const int64_t session = ForwardingCoordinator::session();
  return session != 0 && mutant_ == OwnersMutant::kSessionUnheeded ? 1 : session;
}

}  // namespace firn
