#include "registry/owners/owners.h"

#include <algorithm>
#include <utility>

#include "registry/cluster/slot.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

// How long a beat is seen unchanged before its tenure counts as over. The clocks of two servers may
// run at rates that are each off by a tenth: then the window of the one may last 1.22 of the
// other's.
constexpr Milliseconds Margin(Milliseconds window) { return window + window / 4; }

constexpr Lifetime kStays = Lifetime::kPersistent;

}  // namespace

Owners::Owners(Coordinator& coordinator, Entropy& entropy, OwnersOptions options, Ended ended)
    : registry_(coordinator),
      entropy_(entropy),
      options_(std::move(options)),
      ended_(std::move(ended)) {}

void Owners::Tick(BootMs now) {
  registry_.Tick(now);
  if (look_.done()) look_.Take();
  if (write_.done()) write_.Take();
  if (!wanted_ || registry_.session() == 0) return;
  if (!look_.busy() && now >= look_at_) {
    look_ = Look();
    registry_.Start(look_);
  }
  if (write_.busy()) return;
  std::optional<Task<>> next = NextWrite();
  if (!next) return;
  write_ = *std::move(next);
  registry_.Start(write_);
}

std::optional<Task<>> Owners::NextWrite() {
  if (!tenure_) {
    const bool wants_one = permitted_ && !leaving_ && registry_.now() >= renew_at_;
    return wants_one ? std::optional(BeginTenure()) : std::nullopt;
  }
  if (registry_.now() >= renew_at_) return Renew();
  if (tenure_->unsure) return std::nullopt;
  const bool keeps = permitted_ && !leaving_;
  bool all_read = true;
  for (size_t i = 0; i < kPartitions; ++i) {
    const Share& share = shares_[i];
    all_read &= !share.stale;
    if (!share.stale && IsNamed(share) && !(share.here && keeps)) return GiveUp(i);
  }
  if (leaving_) return all_read ? std::optional(EndBeat()) : std::nullopt;
  if (!keeps || has_lapsed()) return std::nullopt;
  for (size_t i = 0; i < kPartitions; ++i) {
    std::optional<std::vector<Write>> writes = TakingOf(i);
    if (writes) return TakeOver(i, *std::move(writes));
  }
  return std::nullopt;
}

bool Owners::IsNamed(const Share& share) const {
  return tenure_ && share.owner.ok() && share.owner->tenure == tenure_->name;
}

// Rule 5. Returns the multi that takes the partition, once that is permitted.
std::optional<std::vector<Write>> Owners::TakingOf(size_t partition) {
  Share& share = shares_[partition];
  const BootMs now = registry_.now();
  if (share.stale || now < share.try_at || IsNamed(share)) return std::nullopt;
  const int64_t session = registry_.session();
  if (session != synced_session_ || now - synced_at_ < Margin(options_.window)) return std::nullopt;
  const auto rank =
      static_cast<int>(std::min(RankOf(partition, options_.address, servers_), kRankMax));
  const std::string path = PartitionPath(partition);
  PartitionOwner owner{.tenure = tenure_->name, .address = options_.address};
  std::vector<Write> writes{Write::Check(kMetaPath, root_->version)};
  if (share.owner.code() == Code::kNotFound) {
    const Milliseconds wait = Margin(Beat::kWindowMax) + rank * kRankDelay;
    if (!share.sighting.HasLasted(wait, session, now)) return std::nullopt;
    owner.takeover = *(share.takeover = Nonce::Draw(entropy_));
    writes.push_back(Write::Create(path, FormatPartitionOwner(owner), kStays));
  } else {
    if (!share.owner.ok()) return std::nullopt;  // unreadable: an operator must act
    const Nonce& tenure = share.owner->tenure;
    const bool is_free = tenure.zero();
    if (is_free && !share.sighting.HasLasted(rank * kFreeRankDelay, session, now)) {
      return std::nullopt;
    }
    if (!is_free && !AddEnd(writes, tenure, rank * kRankDelay)) return std::nullopt;
    owner.takeover = *(share.takeover = Nonce::Draw(entropy_));
    AddSet(writes, path, FormatPartitionOwner(owner), share.sighting.state().version);
    if (!is_free) writes.push_back(Write::Erase(TakeoverPath(partition, share.owner->takeover), 0));
  }
  writes.push_back(Write::Create(TakeoverPath(partition, owner.takeover), "", kStays));
  writes.push_back(EraCheck(root_->era));
  return writes;
}

// Adds the write by which the tenure ends, or the check that it has. False: that is not permitted
// yet.
bool Owners::AddEnd(std::vector<Write>& writes, const Nonce& tenure, Milliseconds late) const {
  const auto found = beats_.find(tenure);
  if (found == beats_.end()) return false;
  const auto& [sighting, beat] = found->second;
  const auto lasts = [&, this](Milliseconds window) {
    return sighting.HasLasted(window + late, registry_.session(), registry_.now());
  };
  const std::string path = BeatPath(tenure);
  if (beat.code() == Code::kNotFound) {
    const std::string ended = FormatBeat({.ended = true});
    writes.push_back(Write::Create(path, ended, kStays));
    return lasts(Margin(Beat::kWindowMax));
  }
  if (!beat.ok()) return false;
  if (beat->ended) {
    writes.push_back(Write::Check(path, sighting.state().version));
    return sighting.HasLasted(late / (kRankDelay / kFreeRankDelay), registry_.session(),
                              registry_.now());
  }
  Beat ended = *beat;
  ended.ended = true;
  AddSet(writes, path, FormatBeat(ended), sighting.state().version);
  return lasts(Margin(beat->window));
}

// Whatever the outcome, the partition is read again: rule 6.
Task<> Owners::TakeOver(size_t partition, std::vector<Write> writes) {
  shares_[partition].try_at = registry_.now() + look_every();
  const bool creates = shares_[partition].owner.code() == Code::kNotFound;
  Written answer = co_await registry_.Multi(writes);
  ReadSoon(partition);
  if (answer.fate != Written::Fate::kRefused) co_return;
  if (answer.failed == 0) {
    co_await ReadRoot();
  } else if (creates && answer.status.code() == Code::kNotFound) {
    co_await MakeFolders();
  }
}

// Rule 7.
Task<> Owners::GiveUp(size_t partition) {
  Share& share = shares_[partition];
  if (share.here) EndTerm(partition);
  share.takeover.reset();
  std::vector<Write> writes{Write::Check(kMetaPath, root_->version)};
  PartitionOwner nobody = *share.owner;
  nobody.tenure = nobody.takeover = Nonce();
  nobody.address.clear();
  AddSet(writes, PartitionPath(partition), FormatPartitionOwner(nobody),
         share.sighting.state().version);
  writes.push_back(Write::Erase(TakeoverPath(partition, share.owner->takeover), 0));
  writes.push_back(EraCheck(root_->era));
  Written answer = co_await registry_.Multi(writes);
  ReadSoon(partition);
  if (answer.fate == Written::Fate::kRefused && answer.failed == 0) {
    co_await ReadRoot();
  }
}

void Owners::BeginTerm(Share& share) {
  share.here = true;
  share.term.Begin(++terms_, tenure_->until);
}

void Owners::EndTerm(size_t partition) {
  Share& share = shares_[partition];
  share.here = false;
  share.term.End();
  ended_(partition);
}

void Owners::ReadSoon(size_t partition) {
  shares_[partition].stale = true;
  look_at_ = BootMs();
}

Holding Owners::At(size_t partition) const {
  const Share& share = shares_[partition];
  const int64_t version = share.sighting.state().version;
  if (share.here) {
    return {.kind = Holding::Kind::kHere,
            .version = version,
            .term = share.term.Load(),
            .until = share.term.until()};
  }
  if (share.owner.code() == Code::kNotFound) return {.kind = Holding::Kind::kNobody};
  if (!share.owner.ok()) return {};
  if (share.owner->tenure.zero() || IsNamed(share)) {
    return {.kind = Holding::Kind::kNobody, .version = version};
  }
  const auto beat = beats_.find(share.owner->tenure);
  const bool known = beat != beats_.end() && beat->second.beat.ok();
  return {.kind = Holding::Kind::kOther,
          .version = version,
          .address = share.owner->address,
          .secret = known ? beat->second.beat->secret : Nonce()};
}

std::optional<Write> Owners::GuardOf(size_t partition, uint64_t term) const {
  const Share& share = shares_[partition];
  if (!share.here || share.term.Load() != term) return std::nullopt;
  return TakeoverCheck(partition);
}

Write Owners::TakeoverCheck(size_t partition) const {
  return Write::Check(TakeoverPath(partition, *shares_[partition].takeover), 0);
}

}  // namespace firn
