#include "registry/claim/slot_write.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "registry/seam/node_version.h"

namespace firn {
namespace {

constexpr int kMetaIndex = 0;
constexpr int64_t kReadBackDelayMs = 100;

}  // namespace

SlotWrite::SlotWrite(Coordinator& coordinator, Entropy& entropy, SlotChange change)
    : coordinator_(coordinator), entropy_(entropy), change_(std::move(change)) {
  if (change_.ended.has_value() && change_.ended->first < change_.ended->end) {
    ReadPast();
  } else {
    Send();
  }
}

void SlotWrite::Tick(BootMs now) {
  now_ = now;
  mailbox_.Open();
  if (outcome_ != Outcome::kPending || wake_ == BootMs() || now < wake_) return;
  wake_ = BootMs();
  ReadBack();
}

void SlotWrite::ReadPast() {
  coordinator_.Read(
      PastPath(change_.slot),
      mailbox_.Expect<Result<Node>>([this](const Result<Node>& past) { OnPast(past); }));
}

void SlotWrite::OnPast(const Result<Node>& past) {
  PastHolders holders;
  if (past.ok()) {
    if (Result<PastHolders> read = PastHolders::Parse(past->data); read.ok()) {
      holders = std::move(read).value();
    }
  }
  holders.Add(*change_.ended);
  const std::string path = PastPath(change_.slot);
  if (past.ok()) {
    past_write_ = Write::Set(path, holders.Text(), Write::kAnyVersion);
  } else if (past.code() == Code::kNotFound) {
    past_write_ = Write::Create(path, holders.Text(), Lifetime::kPersistent);
  }
  Send();
}

void SlotWrite::Send() {
  if (coordinator_.session() != change_.session) {
    return End(unknown_ ? Outcome::kUnknown : Outcome::kNotApplied, "the session has changed");
  }
  ++sends_;
  coordinator_.Multi(
      Writes(), mailbox_.Expect<WriteOutcome>([this](WriteOutcome answer) { OnAnswer(answer); }));
}

std::vector<Write> SlotWrite::Writes() {
  std::vector<Write> writes;
  writes.reserve(7);
  writes.push_back(Write::Check(kMetaPath, change_.meta_version));
  set_index_ =
      AddSet(writes, SlotPath(change_.slot), FormatSlotRecord(change_.record), change_.version);
  past_index_ = past_write_.has_value() ? static_cast<int>(writes.size()) : -1;
  if (past_write_.has_value()) writes.push_back(*past_write_);
  using Live = SlotChange::Live;
  if (change_.live == Live::kReplace || change_.live == Live::kErase) {
    writes.push_back(Write::Erase(LivePath(change_.slot), Write::kAnyVersion));
  }
  if (change_.live == Live::kReplace || change_.live == Live::kCreate) {
    const LiveMark mark{.endpoint = change_.endpoint, .nonce = change_.record.nonce};
    writes.push_back(
        Write::Create(LivePath(change_.slot), FormatLiveMark(mark), Lifetime::kEphemeral));
  }
  era_index_ = static_cast<int>(writes.size());
  writes.push_back(EraCheck(change_.era));
  return writes;
}

void SlotWrite::OnAnswer(const WriteOutcome& answer) {
  if (answer.status.ok()) {
    const NodeStat& stat = answer.stats.at(set_index_);
    if (!Follows(change_.version, stat.version) || stat.created_zxid != change_.created_zxid) {
      return End(Outcome::kOther, "the record that was set is another creation");
    }
    version_ = stat.version;
    bound_ = change_.record.bound;
    others_ = change_.record.others;
    registry_clock_ = stat.modified;
    return End(Outcome::kApplied, {});
  }
  if (answer.status.code() == Code::kUnknown) {
    unknown_ = true;
    return ReadBack();
  }
  // This send did nothing. An earlier one may have done it all, and be why this one was refused.
  if (unknown_) return ReadBack();
  if (answer.failed < 0) return End(Outcome::kNotApplied, answer.status.message());
  if (answer.failed == past_index_) {
    past_write_.reset();
    return Send();
  }
  const bool era = answer.failed == era_index_;
  if (answer.failed > static_cast<int>(set_index_) && !era) {
    return End(
        answer.status.code() == Code::kNotFound ? Outcome::kLiveMissing : Outcome::kLiveExists,
        answer.status.message());
  }
  const char* const what = era                           ? "the cluster was made anew or restored: "
                           : answer.failed == kMetaIndex ? "the cluster's root node has changed: "
                                                         : "the slot's record has changed: ";
  End(Outcome::kOther, what + answer.status.message());
}

void SlotWrite::ReadBack() {
  ++read_backs_;
  ReadSynced(coordinator_, mailbox_, {kMetaPath, SlotPath(change_.slot)},
             [this](Result<Nodes> nodes) { OnReadBack(std::move(nodes)); });
}

void SlotWrite::OnReadBack(Result<Nodes> nodes) {
  if (!nodes.ok()) return ReadBackLater();
  const std::optional<Node>& meta = (*nodes)[0];
  const std::optional<Node>& record = (*nodes)[1];
  if (!SameCluster(meta)) return End(Outcome::kOther, "the cluster's root node has changed");
  if (!record.has_value() || record->stat.created_zxid != change_.created_zxid ||
      IsOlder(record->stat.version, change_.version)) {
    return End(Outcome::kOther, "the slot's record is gone or another creation");
  }
  const Result<SlotRecord> stands = ParseSlotRecord(record->data);
  if (!stands.ok()) return End(Outcome::kOther, stands.status().message());
  if (record->stat.version == change_.version) return SendAgain(*stands);
  const bool ours = stands->nonce == change_.record.nonce && stands->word == change_.record.word;
  if (!ours || stands->bound < change_.record.bound) {
    return End(Outcome::kOther, "the slot's record is another's");
  }
  version_ = record->stat.version;
  bound_ = stands->bound;
  others_ = stands->others;
  registry_clock_ = record->stat.modified;
  End(Outcome::kApplied, {});
}

bool SlotWrite::SameCluster(const std::optional<Node>& meta) const {
  if (!meta.has_value() || meta->stat.version != change_.meta_version) return false;
  const Result<ClusterMeta> cluster = ParseMeta(meta->data);
  return cluster.ok() && cluster->uuid == change_.uuid && cluster->era == change_.era &&
         !cluster->frozen && cluster->floor <= change_.record.since;
}

void SlotWrite::SendAgain(const SlotRecord& stands) {
  if (stands.nonce != change_.over_nonce || stands.word != change_.over_word ||
      stands.bound != change_.over_bound) {
    return End(Outcome::kOther, "the slot's record is another's under the same version");
  }
  if (sends_ < kSendsMax) return Send();
  End(Outcome::kUnknown, "no answer, and not applied yet");
}

void SlotWrite::ReadBackLater() {
  if (read_backs_ >= kReadBacksMax) return End(Outcome::kUnknown, "no answer");
  const auto delay_ms = static_cast<uint64_t>(kReadBackDelayMs << read_backs_);
  wake_ = now_ + Milliseconds(delay_ms / 2 + entropy_.Below(delay_ms));
}

void SlotWrite::End(Outcome outcome, std::string reason) {
  outcome_ = outcome;
  reason_ = std::move(reason);
}

}  // namespace firn
