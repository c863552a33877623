#include "tests/sim/mutants.h"

#include <algorithm>
#include <utility>

#include "registry/claim/claim_options.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "tests/sim/violation.h"
#include "tests/sim/witness.h"

namespace firn {
namespace {

// The only position in a multi that sets a slot's record: check(meta), set(record), ...
constexpr size_t kRecord = 1;

bool ClaimsOrRenews(const std::vector<Write>& writes) {
  return SetsASlot(writes) && !ParseSlotRecord(writes[kRecord].data)->nonce.zero();
}

// Returns whether the multi is a claim: it changes the nonce, or writes the nonce of a
// kNoncePerProcess process.
bool Claims(const MemoryTree& tree, const std::vector<Write>& writes) {
  if (!SetsASlot(writes)) return false;
  const auto before = tree.Peek(writes[kRecord].path);
  return before.has_value() &&
         ParseSlotRecord(before->data)->nonce != ParseSlotRecord(writes[kRecord].data)->nonce;
}

// Makes the outcome equal to the correct answer for a write at `version`.
void PretendVersion(WriteOutcome& outcome, int64_t version) {
  if (outcome.status.ok()) outcome.stats.at(kRecord).version = version + 1;
}

// Returns whether the mutant comes from a draft without eras. Eras would hide its error.
bool IsFromBeforeEras(Mutant mutant) {
  return mutant == Mutant::kNoEraCheck || mutant == Mutant::kFloorWithoutMetaCheck ||
         mutant == Mutant::kBlindRenewal || mutant == Mutant::kNumbersAreEnough;
}

void DropEraCheck(std::vector<Write>& writes) {
  const Write& last = writes.back();
  if (last.kind == Write::Kind::kCheck && last.path.find(kEraPrefix) == 1) writes.pop_back();
}

std::string WithFloor(const std::string& meta, WallMs floor) {
  Result<ClusterMeta> changed = ParseMeta(meta);
  if (!changed.ok()) return meta;
  changed->floor = floor;
  return FormatMeta(*changed);
}

// Favours worlds in which a copy keeps running without the registry after the other copy has
// stopped.
void FavourCutOffCopies(SimSizes& sizes) {
  sizes.window = Milliseconds(600'000);
  sizes.fault_every = std::min<decltype(sizes.fault_every)>(sizes.fault_every, 200);
  sizes.Favour(Fault::kCut);
}

}  // namespace

void Favour(Mutant mutant, SimSizes& sizes) {
  switch (mutant) {
    case Mutant::kCopiedGrantTrusted:
    case Mutant::kInodeNumberOnly:
    case Mutant::kGrantOnDisk:
      sizes.Favour(Fault::kKill);
      return sizes.Favour(Fault::kDisk);
    case Mutant::kGrantWithoutMeta:
      sizes.registry_weights[static_cast<size_t>(RegistryFault::kRestore)] += 10;
      sizes.Favour(Fault::kKill);
      return sizes.Favour(Fault::kRegistry);
    case Mutant::kInheritAtWallsWord:
      // A long downtime, in which the clock may be set wrong.
      sizes.start_every = 100;
      sizes.off_one_in = 1;
      sizes.Favour(Fault::kKill);
      return sizes.Favour(Fault::kClock);
    case Mutant::kEarlyClockKept:
    case Mutant::kOwnClockAsked:
      sizes.off_one_in = 2;
      return sizes.Favour(Fault::kClock);
    case Mutant::kCopyUnseen:
    case Mutant::kHintWithoutClaim:
    case Mutant::kOvertakenUnnamed:
      sizes.copies = true;
      sizes.generations = mutant == Mutant::kCopyUnseen;
      sizes.tags = false;
      if (mutant == Mutant::kHintWithoutClaim) FavourCutOffCopies(sizes);
      sizes.Favour(Fault::kKill);
      sizes.Favour(Fault::kStop);
      return sizes.Favour(Fault::kCopy);
    case Mutant::kWriterForgotten:
      sizes.registry_weights[static_cast<size_t>(RegistryFault::kLoss)] += 10;
      sizes.Favour(Fault::kStop);
      return sizes.Favour(Fault::kRegistry);
    case Mutant::kTwinUnnoticed:
    case Mutant::kCopiesDrawAlike:
      sizes.generations = false;
      sizes.copies = true;
      sizes.tags = false;
      return sizes.Favour(Fault::kCopy);
    case Mutant::kPlainVersions:
      sizes.wraps = true;
      return;
    case Mutant::kRegistryClockRules:
      sizes.registry_weights[static_cast<size_t>(RegistryFault::kClock)] += 20;
      return sizes.Favour(Fault::kRegistry);
    case Mutant::kRestoredIsForeign:
      sizes.registry_weights[static_cast<size_t>(RegistryFault::kRepeat)] += 10;
      return sizes.Favour(Fault::kRegistry);
    case Mutant::kLooksLate:
      sizes.registry_weights[static_cast<size_t>(RegistryFault::kInit)] += 20;
      return sizes.Favour(Fault::kRegistry);
    case Mutant::kTagsWithoutRoot:
      sizes.tags = sizes.probes = true;
      sizes.copies = false;
      sizes.registry_weights[static_cast<size_t>(RegistryFault::kLoss)] += 10;
      return sizes.Favour(Fault::kRegistry);
    case Mutant::kOfflineUnnamed:
      sizes.registry_weights[static_cast<size_t>(RegistryFault::kOutage)] += 10;
      sizes.Favour(Fault::kRegistry);
      return sizes.Favour(Fault::kKill);
    case Mutant::kReadyByClaim:
      sizes.probes = true;
      return;
    default:
      return;
  }
}

void SeamCoordinator::NoteShown(const std::string& path, const Result<Node>& node) {
  if (path == kMetaPath) {
    const Result<ClusterMeta> meta = node.ok() ? ParseMeta(node->data) : node.status();
    shown_uuid_ = meta.ok() ? meta->uuid : std::string();
    shown_floor_ = meta.ok() ? meta->floor : WallMs();
  } else if (path == own_path_) {
    const Result<SlotRecord> record = node.ok() ? ParseSlotRecord(node->data) : node.status();
    shown_record_ = record.ok() ? std::optional(*record) : std::nullopt;
  }
}

void SeamCoordinator::JudgeAlarm(const std::string& text) const {
  if (text.find("may be duplicated") == std::string::npos || !shown_record_.has_value()) return;
  const SlotRecord& record = *shown_record_;
  const bool others = record.nonce.zero() || record.since >= renewed_.bound;
  Require(!(others && record.nonce != renewed_.nonce && shown_uuid_ == own_uuid_ &&
            shown_floor_ >= renewed_.bound),
          14, "an alarm names ids as duplicated that no other claim can share");
}

// Makes a record that a restore re-created look like the record of another holder.
void SeamCoordinator::AsForeign(const std::string& path, Node& node) const {
  Result<SlotRecord> record = ParseSlotRecord(node.data);
  if (path != own_path_ || !record.ok() || record->nonce == renewed_.nonce) return;
  if (record->nonce.zero()) record->nonce = Nonce(1, 1);
  record->since = WallMs();
  node.data = FormatSlotRecord(*record);
}

// Sets the bound of a renewal by the registry's clock, without checking the clock.
void SeamCoordinator::BoundByRegistryClock(Write& set) const {
  const auto before = tree_.Peek(set.path);
  SlotRecord record = *ParseSlotRecord(set.data);
  const WallMs shows = registry_clock_->Wall();
  const Milliseconds window = record.bound - clock_.Wall();
  record.bound = std::min(std::max(record.bound, shows + window), shows + kPoisonAhead);
  if (before.has_value())
    record.bound = std::max(record.bound, ParseSlotRecord(before->data)->bound);
  set.data = FormatSlotRecord(record);
}

void SeamCoordinator::Read(const std::string& path, ReadDone done, Changed changed) {
  if (holds_()) {
    done = [this, path, done = std::move(done)](Result<Node> node) {
      NoteShown(path, node);
      if (node.ok() && mutant_ == Mutant::kRestoredIsForeign) AsForeign(path, *node);
      done(std::move(node));
    };
  }
  if (mutant_ == Mutant::kTwinUnnoticed || mutant_ == Mutant::kPlainVersions) {
    done = [this, path, done = std::move(done)](Result<Node> node) {
      if (node.ok() && mutant_ == Mutant::kTwinUnnoticed) WithOwnWord(*node);
      if (node.ok() && mutant_ == Mutant::kPlainVersions) WithPlainVersion(path, *node);
      done(std::move(node));
    };
  } else if (mutant_ == Mutant::kNumbersAreEnough && path != kMetaPath) {
    done = [this, path, done = std::move(done)](Result<Node> node) {
      AsRemembered(path, node);
      done(std::move(node));
    };
  } else if (mutant_ == Mutant::kFreezesAgain && path == kMetaPath && holds_()) {
    done = [done = std::move(done)](Result<Node> node) {
      if (node.ok()) node->data = WithFloor(node->data, WallMs());
      done(std::move(node));
    };
  }
  inner().Read(path, std::move(done), std::move(changed));
}

void SeamCoordinator::WithOwnWord(Node& node) const {
  Result<SlotRecord> record = ParseSlotRecord(node.data);
  if (!record.ok() || record->nonce.zero() || record->nonce != own_.nonce) return;
  record->word = own_.word;
  node.data = FormatSlotRecord(*record);
}

// Makes a record whose version has wrapped look older than the last one read.
void SeamCoordinator::WithPlainVersion(const std::string& path, Node& node) {
  int64_t& highest = highest_.emplace(path, node.stat.version).first->second;
  if (node.stat.version < highest) node.stat.version = highest - 1;
  highest = std::max(highest, node.stat.version);
}

void SeamCoordinator::AsRemembered(const std::string& path, Result<Node>& node) {
  if (!node.ok() || node->stat.ephemeral_owner != 0) return;
  Node& known = remembered_[path];
  const bool same_numbers = known.stat.version == node->stat.version &&
                            known.stat.created_zxid == node->stat.created_zxid;
  if (same_numbers) node->data = known.data;
  known = *node;
}

void SeamCoordinator::OnSession(std::function<void(SessionEvent)> handler) {
  if (mutant_ != Mutant::kBlindRenewal) return inner().OnSession(std::move(handler));
  inner().OnSession([handler = std::move(handler), told = int64_t{0}](SessionEvent event) mutable {
    const bool connected = event.kind == SessionEvent::Kind::kConnected;
    if (event.kind == SessionEvent::Kind::kDisconnected && told != 0) return;
    if (connected && event.session == told) return;
    told = connected ? event.session : 0;
    handler(event);
  });
}

void SeamCoordinator::Multi(std::vector<Write> writes, WriteDone done) {
  const bool dies = (dies_in_ > 0 && --dies_in_ == 0) || (dies_at_claim_ && Claims(tree_, writes));
  if (dies && dies_before_) throw ProcessDies();
  if (meanwhile_ && ClaimsOrRenews(writes)) {
    std::exchange(meanwhile_,
                  {})({writes[kRecord].path, writes[0].version, writes[kRecord].version});
  }
  if (ClaimsOrRenews(writes)) {
    const bool renews = !Claims(tree_, writes);
    if (renews && mutant_ == Mutant::kRegistryClockRules) BoundByRegistryClock(writes[kRecord]);
    renewed_ = *ParseSlotRecord(writes[kRecord].data);
    own_path_ = writes[kRecord].path;
    const auto meta = tree_.Peek(kMetaPath);
    if (!renews && meta.has_value()) own_uuid_ = ParseMeta(meta->data)->uuid;
  }
  if (IsFromBeforeEras(mutant_)) DropEraCheck(writes);
  if (mutant_ == Mutant::kTwinUnnoticed && ClaimsOrRenews(writes)) {
    own_ = *ParseSlotRecord(writes[kRecord].data);
  }
  if (mutant_ == Mutant::kOwnClockAsked) {
    done = [this, done = std::move(done)](WriteOutcome outcome) {
      for (NodeStat& stat : outcome.stats) stat.modified = clock_.Wall();
      done(std::move(outcome));
    };
  }
  Send(std::move(writes), std::move(done));
  if (dies) throw ProcessDies();
}

void SeamCoordinator::SendAndRemember(std::vector<Write> writes, WriteDone done) {
  const std::string path = writes[kRecord].path;
  const std::string data = writes[kRecord].data;
  inner().Multi(std::move(writes), [this, path, data, done](WriteOutcome outcome) {
    if (outcome.status.ok()) remembered_[path] = {data, outcome.stats.at(kRecord)};
    done(std::move(outcome));
  });
}

void SeamCoordinator::Send(std::vector<Write> writes, WriteDone done) {
  if (mutant_ == Mutant::kFreezesAgain && writes[0].kind == Write::Kind::kSet &&
      writes[0].path == kMetaPath) {
    const auto meta = tree_.Peek(kMetaPath);
    if (meta.has_value()) {
      writes[0].data = WithFloor(writes[0].data, ParseMeta(meta->data)->floor);
    }
  }
  const bool names_past = writes[0].kind == Write::Kind::kCheck &&
                          writes.back().path.ends_with("/past") && !SetsASlot(writes);
  if (mutant_ == Mutant::kOvertakenUnnamed && names_past) writes.pop_back();
  if (mutant_ == Mutant::kWriterForgotten && SetsASlot(writes)) {
    SlotRecord record = *ParseSlotRecord(writes[kRecord].data);
    record.writer.reset();
    writes[kRecord].data = FormatSlotRecord(record);
  }
  if (mutant_ == Mutant::kNone || !SetsASlot(writes)) {
    return inner().Multi(std::move(writes), std::move(done));
  }
  const int64_t version = writes[kRecord].version;
  switch (mutant_) {
    case Mutant::kNoVersionCheck:
      writes[kRecord].version = Write::kAnyVersion;
      return inner().Multi(std::move(writes), [done, version](WriteOutcome outcome) {
        PretendVersion(outcome, version);
        done(std::move(outcome));
      });
    case Mutant::kTimeoutIsSuccess: {
      const auto node = tree_.Peek(writes[kRecord].path);
      const NodeStat pretended{version + 1, node.has_value() ? node->stat.created_zxid : 0, {}, 0};
      return inner().Multi(std::move(writes), [done, pretended](WriteOutcome outcome) {
        if (outcome.status.code() == Code::kUnknown) {
          outcome = {Status(), -1, {NodeStat(), pretended, NodeStat(), NodeStat()}};
        }
        done(std::move(outcome));
      });
    }
    case Mutant::kSetAgainOverForeign: {
      std::vector<Write> again = writes;
      return inner().Multi(std::move(writes), [this, again, done, version](WriteOutcome outcome) {
        const auto node = tree_.Peek(again[kRecord].path);
        if (outcome.failed != static_cast<int>(kRecord) || !node.has_value()) {
          return done(std::move(outcome));
        }
        std::vector<Write> newer = again;
        newer[kRecord].version = node->stat.version;
        inner().Multi(std::move(newer), [done, version](WriteOutcome second) {
          PretendVersion(second, version);
          done(std::move(second));
        });
      });
    }
    case Mutant::kFloorWithoutMetaCheck:
      // A check of the slot in place of the root node keeps the indices of the other writes.
      writes[0] = Write::Check(writes[kRecord].path, version);
      return inner().Multi(std::move(writes), [done](WriteOutcome outcome) {
        if (outcome.failed == 0) outcome.failed = static_cast<int>(kRecord);
        done(std::move(outcome));
      });
    case Mutant::kNumbersAreEnough:
      return SendAndRemember(std::move(writes), std::move(done));
    default:
      return inner().Multi(std::move(writes), std::move(done));
  }
}

}  // namespace firn
