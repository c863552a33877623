#include "tests/sim/owners/owners_mutants.h"

#include <algorithm>
#include <utility>

#include "registry/owners/owner_records.h"

namespace firn {
namespace {

bool IsBeat(const std::string& path) { return path.starts_with(std::string(kBeatsPath) + "/"); }

bool SetsPartition(const Write& write) {
  return write.kind == Write::Kind::kSet &&
         write.path.starts_with(std::string(kPartitionsPath) + "/");
}

bool SetsBeat(const Write& write) { return write.kind == Write::Kind::kSet && IsBeat(write.path); }

// Answers the multi as its sender would believe it.
WriteOutcome AsIfDone(const std::vector<Write>& writes) {
  WriteOutcome told;
  for (const Write& write : writes) told.stats.emplace_back().version = write.version + 1;
  return told;
}

std::string Shortened(const std::string& text) {
  Result<Beat> beat = ParseBeat(text);
  if (!beat.ok()) return text;
  beat->window = std::max(beat->window * 4 / 5, Beat::kWindowMin);
  return FormatBeat(*beat);
}

}  // namespace

void OwnersSeam::Read(const std::string& path, ReadDone done, Changed changed) {
  if (!watches_) changed = {};
  if (mutant_ != OwnersMutant::kNoMargin || !IsBeat(path)) {
    return inner().Read(path, std::move(done), std::move(changed));
  }
  const auto lie = [done = std::move(done)](Result<Node> node) {
    if (node.ok()) node->data = Shortened(node->data);
    done(std::move(node));
  };
  inner().Read(path, lie, std::move(changed));
}

void OwnersSeam::Multi(std::vector<Write> writes, WriteDone done) {
  const bool of_partition = std::any_of(writes.begin(), writes.end(), SetsPartition);
  const bool of_beat = std::any_of(writes.begin(), writes.end(), SetsBeat);
  const bool renews = of_beat && !of_partition;
  const OwnersMutant ignores = renews ? OwnersMutant::kBeatOverForeign  //
                                      : OwnersMutant::kVersionUnheeded;
  const std::vector<Write> meant = writes;
  for (Write& write : writes) {
    if (mutant_ == ignores && SetsBeat(write)) write.version = Write::kAnyVersion;
  }
  const auto judge = [this, meant, of_partition, of_beat, renews, sent = clock_.Boot(),
                      done = std::move(done)](WriteOutcome outcome) {
    const bool unknown = outcome.status.code() == Code::kUnknown;
    const bool lies = (unknown && mutant_ == OwnersMutant::kUnacknowledgedCounts) ||
                      (outcome.status.ok() && mutant_ == OwnersMutant::kBeatOverForeign);
    if (renews && lies) outcome = AsIfDone(meant);
    if (outcome.status.ok()) {
      if (renews) latency_ = clock_.Boot() - sent;
      if (of_partition && of_beat) ++takeovers_;
      if (of_partition && !of_beat) ++releases_;
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
