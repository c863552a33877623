#include "registry/owners/owners.h"

#include <algorithm>
#include <utility>

#include "registry/cluster/slot.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

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
  if (past_) return EndBeat();
  if (!tenure_) {
    const bool wants_one = permitted_ && !leaving_ && registry_.now() >= renew_at_;
    return wants_one ? std::optional(BeginTenure()) : std::nullopt;
  }
  if (registry_.now() >= renew_at_) return Renew();
  if (tenure_->unsure) return std::nullopt;
  const bool leaves = Leaves();
  bool all_read = true;
  for (size_t i = 0; i < kPartitions; ++i) {
    const Share& share = shares_[i];
    all_read &= !share.stale;
    if (!share.stale && IsNamed(share) && !(share.here && permitted_ && !leaves && !gives_up_)) {
      return GiveUp(i);
    }
  }
  if (leaves && all_read) {
    EndTenure("handed over");
    return EndBeat();
  }
  if (!permitted_ || leaves || gives_up_ || has_lapsed()) return std::nullopt;
  const std::vector<std::string> candidates = Candidates();
  for (size_t i = 0; i < kPartitions; ++i) {
    std::optional<std::vector<Write>> writes = TakingOf(i, candidates);
    if (writes) return TakeOver(i, *std::move(writes));
  }
  return Sweep(candidates);
}

bool Owners::IsNamed(const Share& share) const {
  return tenure_ && share.owner.ok() && share.owner->tenure == tenure_->name;
}

// Returns whether a partition names the tenure, or may: one that was not read.
bool Owners::MayBeNamed(const Nonce& tenure) const {
  return std::any_of(shares_.begin(), shares_.end(), [&](const Share& share) {
    const bool known = !share.stale && (share.owner.ok() || share.owner.code() == Code::kNotFound);
    return !known || (share.owner.ok() && share.owner->tenure == tenure);
  });
}

bool Owners::IsRenewed(const OtherBeat& other) const {
  return other.beat.ok() && !other.beat->ended &&
         !other.sighting.HasLasted(Margin(other.beat->window), registry_.session(),
                                   registry_.now());
}

bool Owners::Stays(const OtherBeat& other) const {
  return IsRenewed(other) && !other.beat->leaving;
}

// Returns whether another server stays.
bool Owners::HasCompany() const {
  return std::ranges::any_of(beats_, [this](const auto& other) { return Stays(other.second); });
}

bool Owners::MayTake(const OtherBeat& other) const { return Stays(other) && !other.beat->young; }

// Rule 7. Returns whether this server gives up its partitions and takes no others. A beat that is
// not renewed may be of a server that was killed a short time ago.
bool Owners::Leaves() const {
  if (!leaving_ || !waits_) return leaving_;
  return std::ranges::any_of(beats_, [this](const auto& entry) {
    const OtherBeat& other = entry.second;
    const bool renewed = other.when_leaving && *other.when_leaving != other.sighting.state();
    return renewed && MayTake(other) && other.beat->address != options_.address;
  });
}

bool Owners::awaits_successor() const {
  if (!leaving_ || (Leaves() && !handed_over())) return true;
  if (!knows_leavers_) return tenure_ && !has_lapsed();
  const auto is_open = [](const Share& share) {
    return share.here || (share.owner.ok() && share.owner->tenure.zero());
  };
  return std::ranges::any_of(shares_, is_open) && HasCompany();
}

Milliseconds Owners::Avoidance() const {
  const auto may_take = [this](const auto& other) { return MayTake(other.second); };
  return is_avoided() && std::ranges::any_of(beats_, may_take) ? options_.window : Milliseconds(0);
}

// Returns this server and those that stay.
std::vector<std::string> Owners::Candidates() const {
  std::vector<std::string> addresses{options_.address};
  for (const auto& [tenure, other] : beats_) {
    if (Stays(other)) addresses.push_back(other.beat->address);
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

// Returns this server and those that may take a partition that `left` has given up.
std::vector<std::string> Owners::Successors(const std::string& left) const {
  std::vector<std::string> addresses{options_.address};
  for (const auto& [tenure, other] : beats_) {
    const bool takes = MayTake(other) && other.beat->address != left;
    if (takes && other.beat->address != options_.address) addresses.push_back(other.beat->address);
  }
  return addresses;
}

// Rule 5. Returns the multi that takes the partition, or nullopt if this server may not take it
// yet.
std::optional<std::vector<Write>> Owners::TakingOf(size_t partition,
                                                   const std::vector<std::string>& candidates) {
  Share& share = shares_[partition];
  const BootMs now = registry_.now();
  if (share.stale || now < share.try_at || IsNamed(share) || is_young()) return std::nullopt;
  const int64_t session = registry_.session();
  const bool is_free = share.owner.ok() && share.owner->tenure.zero();
  const bool was_left = is_free && !share.left.empty();
  const auto rank = static_cast<int>(
      std::min(RankOf(partition, options_.address, was_left ? Successors(share.left) : candidates),
               kRankMax));
  std::vector<Write> writes{Write::Check(kMetaPath, root_->version),
                            Write::Check(BeatPath(tenure_->name), tenure_->version),
                            Write::Check(AlivePath(tenure_->name), 0)};
  if (share.owner.code() == Code::kNotFound) {
    const Milliseconds wait = Margin(Beat::kWindowMax) + rank * kRankDelay + Avoidance();
    if (!share.sighting.HasLasted(wait, session, now)) return std::nullopt;
  } else {
    if (!share.owner.ok()) return std::nullopt;  // unreadable: an operator must act
    const Milliseconds wait = rank * kFreeRankDelay + Avoidance();
    if (is_free && !share.sighting.HasLasted(wait, session, now)) return std::nullopt;
    // Servers that started at the same time share the partitions.
    if (is_free && !was_left && now < takes_from() + rank * kRankDelay) return std::nullopt;
    if (!is_free && !AddEnd(writes, partition, rank * kRankDelay)) return std::nullopt;
  }
  share.change = Nonce::Draw(entropy_);
  AddChange(writes, partition,
            {.tenure = tenure_->name, .address = options_.address, .change = *share.change});
  writes.push_back(EraCheck(root_->era));
  return writes;
}

// Adds the writes of the partition's node, and of the nodes of its changes.
void Owners::AddChange(std::vector<Write>& writes, size_t partition, PartitionOwner owner) const {
  const Share& share = shares_[partition];
  const std::string path = PartitionPath(partition);
  if (!share.owner.ok()) {
    writes.push_back(Write::Create(path, FormatPartitionOwner(owner), kStays));
  } else {
    owner.others = share.owner->others;
    AddSet(writes, path, FormatPartitionOwner(owner), share.sighting.state().version);
    const Nonce& before = share.owner->change;
    if (!before.zero()) writes.push_back(Write::Erase(ChangePath(partition, before), 0));
  }
  writes.push_back(Write::Create(ChangePath(partition, owner.change), "", kStays));
}

// Adds the write that ends the tenure of the partition's owner, or the check that it has ended.
// Returns false if the tenure may not be ended yet.
bool Owners::AddEnd(std::vector<Write>& writes, size_t partition, Milliseconds late) const {
  const Nonce& tenure = shares_[partition].owner->tenure;
  const auto found = beats_.find(tenure);
  if (found == beats_.end()) return false;
  const Sighting& sighting = found->second.sighting;
  const Result<Beat>& beat = found->second.beat;
  const bool is_missing = beat.code() == Code::kNotFound;
  if (!beat.ok() && !is_missing) return false;
  Milliseconds wait = Margin(is_missing ? Beat::kWindowMax : beat->window) + late;
  if (beat.ok() && beat->ended) wait = late / (kRankDelay / kFreeRankDelay);
  if (!sighting.HasLasted(wait + Avoidance(), registry_.session(), registry_.now())) return false;
  const std::string path = BeatPath(tenure);
  const int64_t version = sighting.state().version;
  Beat ended = is_missing ? Beat() : *beat;
  if (ended.ended) {
    // A version recurs in a registry that has gone back. The creation fails if the tenure lives.
    writes.push_back(Write::Check(path, version));
    writes.push_back(Write::Create(AlivePath(tenure), "", kStays));
    writes.push_back(Write::Erase(AlivePath(tenure), 0));
    return true;
  }
  ended.ended = true;
  if (is_missing) {
    writes.push_back(Write::Create(path, FormatBeat(ended), kStays));
  } else {
    AddSet(writes, path, FormatBeat(ended), version);
    writes.push_back(Write::Erase(AlivePath(tenure), 0));
  }
  return true;
}

// The partition is re-read after every outcome: rule 6.
Task<> Owners::TakeOver(size_t partition, std::vector<Write> writes) {
  shares_[partition].try_at = registry_.now() + look_every();
  const bool creates = shares_[partition].owner.code() == Code::kNotFound;
  Written answer = co_await registry_.Multi(writes);
  ReadSoon(partition);
  if (answer.fate != Written::Fate::kRefused) co_return;
  if (answer.failed == 0) {
    co_await ReadRoot();
  } else if (answer.failed <= 2) {
    renew_at_ = BootMs();  // this server's beat may have changed: the renewal finds out
  } else if (creates && answer.status.code() == Code::kNotFound) {
    co_await MakeFolders();
  }
}

// Rule 7.
Task<> Owners::GiveUp(size_t partition) {
  Share& share = shares_[partition];
  if (share.here) EndTerm(partition);
  share.change.reset();
  // If a copy of this machine has renewed the beat, the copy owns the partition.
  std::vector<Write> writes{Write::Check(kMetaPath, root_->version),
                            Write::Check(BeatPath(tenure_->name), tenure_->version)};
  AddChange(writes, partition, {.change = Nonce::Draw(entropy_)});
  writes.push_back(EraCheck(root_->era));
  Written answer = co_await registry_.Multi(writes);
  ReadSoon(partition);
  if (answer.fate == Written::Fate::kRefused && answer.failed == 1) renew_at_ = BootMs();
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
  shares_[partition].stale = shares_[partition].changed = true;
  look_at_ = BootMs();
}

Holding Owners::At(size_t partition) const {
  const Share& share = shares_[partition];
  const int64_t version = share.sighting.state().version;
  if (share.here && has_lapsed()) return {.kind = Holding::Kind::kLapsed, .version = version};
  if (share.here) {
    return {.kind = Holding::Kind::kHere,
            .version = version,
            .since = share.modified,
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
  // A tenure that has ended may be an earlier one of this server.
  if (share.owner->address == options_.address || (known && beat->second.beat->ended)) {
    return {.kind = Holding::Kind::kNobody, .version = version};
  }
  return {.kind = Holding::Kind::kOther,
          .version = version,
          .since = share.modified,
          .address = share.owner->address,
          .secret = known ? beat->second.beat->secret : Nonce(),
          .tls = known ? beat->second.beat->tls : std::nullopt};
}

Write Owners::ChangeCheck(size_t partition) const {
  return Write::Check(ChangePath(partition, *shares_[partition].change), 0);
}

}  // namespace firn
