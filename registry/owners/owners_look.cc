#include <algorithm>

#include "registry/owners/owners.h"

namespace firn {
namespace {

Sighting::State StateOf(const Result<Node>& node) {
  return node.ok() ? Sighting::State{node->stat.version, node->stat.created_zxid}
                   : Sighting::State{};
}

// Returns whether the registry answered, also that the node is missing or damaged.
template <typename Value>
bool IsAnswer(const Result<Value>& read) {
  return read.ok() || read.code() == Code::kNotFound || read.code() == Code::kCorrupt;
}

}  // namespace

// Reads the partitions that may have changed, and one other, since notifications can be lost; then
// the beats of their owners, and once a window all beats: always, if they matter now. Ignores an
// answer that arrives in another session than its request was sent in.
Task<> Owners::Look() {
  look_at_ = registry_.now() + look_every();
  const int64_t session = registry_.session();
  const bool said_so = tenure_ && tenure_->beat.leaving;
  if (synced_session_ != session) {
    // A lagging server of the registry would return earlier states of the partitions.
    const std::string root = "/";
    Status synced = co_await registry_.Sync(root);
    if (!synced.ok() || registry_.session() != session) co_return;
    synced_session_ = session;
    synced_at_ = registry_.now();
    if (tenure_ && !tenure_->beat.young) renew_at_ = BootMs();
    for (Share& share : shares_) share.stale = true;
  }
  if (leaving_ && !Leaves()) {  // others may give theirs up
    for (Share& share : shares_) share.stale = true;
  }
  shares_[next_partition_].stale = true;
  next_partition_ = (next_partition_ + 1) % kPartitions;
  bool read = co_await ReadPartitions();
  if (!read) co_return;
  std::vector<Nonce> tenures = OthersTenures();
  const bool matter = leaving_ || is_avoided() || !listed_by_.empty();
  const bool lists = matter || registry_.now() >= list_at_;
  if (lists) {
    const std::string path = kBeatsPath;
    Result<std::vector<std::string>> names = co_await registry_.List(path);
    if (registry_.session() != session || !IsAnswer(names)) co_return;
    if (names.ok()) AddListed(*names, tenures);
    std::erase_if(beats_, [&](const auto& entry) {
      return std::find(tenures.begin(), tenures.end(), entry.first) == tenures.end();
    });
  }
  if (!tenures.empty()) {
    std::vector<std::string> paths;
    for (const Nonce& tenure : tenures) paths.push_back(BeatPath(tenure));
    Readings readings = co_await registry_.ReadAll(paths);
    if (registry_.session() != session) co_return;
    for (const Reading& reading : readings) {
      if (!IsAnswer(reading.node)) {
        read = false;
        continue;
      }
      OtherBeat& other = beats_[tenures[reading.which]];
      other.sighting.Saw(StateOf(reading.node), session, registry_.now(), gap_max());
      if (said_so && !other.when_leaving) other.when_leaving = other.sighting.state();
      other.beat = reading.node.ok() ? ParseBeat(reading.node->data) : reading.node.status();
    }
  }
  if (lists) list_at_ = registry_.now() + options_.window;
  has_looked_ |= read;
  knows_leavers_ |= read && said_so;
  JudgeReach();
}

// Returns false unless all answers have arrived in this session.
Task<bool> Owners::ReadPartitions() {
  const int64_t session = registry_.session();
  std::vector<size_t> partitions;
  std::vector<std::string> paths;
  for (size_t i = 0; i < kPartitions; ++i) {
    if (!shares_[i].stale && shares_[i].owner.ok()) continue;
    partitions.push_back(i);
    paths.push_back(PartitionPath(i));
    shares_[i].changed = false;
  }
  const AsyncRegistry::Watch watch = [&](size_t which) {
    return guard_.Bind([this, partition = partitions[which]] { ReadSoon(partition); });
  };
  Readings readings = co_await registry_.ReadAll(paths, watch);
  bool all = registry_.session() == session;
  for (const Reading& reading : readings) {
    const size_t partition = partitions[reading.which];
    if (registry_.session() == session && IsAnswer(reading.node)) {
      shares_[partition].stale = shares_[partition].changed;
      See(partition, reading.node);
    } else {
      shares_[partition].stale = true;
      all = false;
    }
  }
  co_return all;
}

void Owners::See(size_t partition, const Result<Node>& node) {
  Share& share = shares_[partition];
  const Sighting::State before = share.sighting.state(), state = StateOf(node);
  share.sighting.Saw(state, registry_.session(), registry_.now(), gap_max());
  share.owner = node.ok() ? ParsePartitionOwner(node->data) : node.status();
  share.modified = node.ok() ? node->stat.modified : WallMs();
  if (share.owner.ok() && !share.owner->tenure.zero()) share.left = share.owner->address;
  const bool is_own = IsNamed(share) && share.owner->change == share.change;
  if (share.here && (state != before || !is_own)) {
    EndTenure("another process has changed a partition");
  } else if (is_own && !share.here && permitted_ && !Leaves()) {
    BeginTerm(share);
  }
}

// Rule 9.
void Owners::JudgeReach() {
  size_t others = 0, lists = 0;
  listed_by_.clear();
  for (const auto& [tenure, other] : beats_) {
    if (!IsRenewed(other) || other.beat->address == options_.address) continue;
    ++others;
    if (!Lists(other.beat->unreachable, options_.address)) continue;
    listed_by_.push_back(other.beat->address);
    if (!Lists(unreachable_, other.beat->address)) ++lists;
  }
  const BootMs now = registry_.now();
  const bool owns = std::ranges::any_of(shares_, &Share::here);
  if (!owns || 2 * lists <= others) {
    listed_since_.reset();
  } else if (!listed_since_) {
    listed_since_ = now;
  }
  gives_up_ = listed_since_ && now - *listed_since_ >= 2 * options_.window;
  if (gives_up_) avoided_until_ = now + kAvoided;
}

std::optional<bool> Owners::TlsOf(const std::string& address) const {
  for (const auto& [tenure, other] : beats_) {
    if (IsRenewed(other) && other.beat->address == address) return other.beat->tls;
  }
  return std::nullopt;
}

std::vector<Nonce> Owners::OthersTenures() const {
  std::vector<Nonce> tenures;
  for (const Share& share : shares_) {
    const bool has_owner = share.owner.ok() && !share.owner->tenure.zero() && !IsNamed(share);
    const bool known = has_owner && std::find(tenures.begin(), tenures.end(),
                                              share.owner->tenure) != tenures.end();
    if (has_owner && !known) tenures.push_back(share.owner->tenure);
  }
  return tenures;
}

// Adds the tenures of the listed beats, except this server's own.
void Owners::AddListed(const std::vector<std::string>& names, std::vector<Nonce>& tenures) const {
  for (const std::string& name : names) {
    Result<Nonce> tenure = Nonce::Parse(name);
    if (!tenure.ok() || (tenure_ && *tenure == tenure_->name)) continue;
    if (std::find(tenures.begin(), tenures.end(), *tenure) == tenures.end()) {
      tenures.push_back(*tenure);
    }
  }
}

}  // namespace firn
