#include "server/node/tag_owners.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/log/log.h"

namespace firn {

TagOwners::TagOwners(Coordinator& coordinator, Entropy& entropy, OwnersSetup setup)
    : setup_(std::move(setup)),
      owners_(coordinator, entropy, {.address = setup_.address, .tls = setup_.tls},
              [this](size_t partition) { Ended(partition); }) {
  owners_.Permit(!setup_.address.empty());
}

Status TagOwners::Check() const {
  if (!setup_.address.empty()) return {};
  return Invalid(
      "other programs cannot reach this one, so it cannot own numbers: buffer = owner needs a "
      "server; take buffer = none or double");
}

void TagOwners::Add(const TagDefinition& tag, const std::shared_ptr<OwnedNumbers>& own) {
  if (!wanted_.exchange(true)) owners_.Want();
  const std::lock_guard lock(mutex_);
  served_[tag.name] = {FormOf(tag), own};
}

// Called when a term is over. Gives the numbers in memory back before another term can begin here.
void TagOwners::Ended(size_t partition) {
  std::vector<std::shared_ptr<OwnedNumbers>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [tag, served] : served_) {
      if (PartitionOf(tag) != partition) continue;
      if (auto own = served.own.lock()) ended.push_back(std::move(own));
    }
  }
  for (const auto& own : ended) own->HandOver();
}

// Asks each owner once a window, also if no call needs its numbers, so that all servers know
// whether they reach it. And asks those that cannot reach this server.
void TagOwners::Probe() {
  std::map<std::string, PeerTake> takes;  // by address
  for (const std::string& address : owners_.listed_by()) {
    takes[address] = {
        .secret = Nonce().text(), .tag = {}, .form = {}, .tls = owners_.TlsOf(address)};
  }
  {
    const std::lock_guard lock(mutex_);
    for (const Holding& owner : holdings_) {
      if (owner.kind != Holding::Kind::kOther || owner.secret.zero()) continue;
      takes[owner.address] = {
          .secret = owner.secret.text(), .tag = {}, .form = {}, .tls = owner.tls};
    }
  }
  for (const auto& [address, take] : takes) {
    setup_.ask(
        address, take, [] { return 1; }, [](const Result<Range>&) {});
  }
}

void TagOwners::Tick(BootMs now) {
  if (!wanted_) return;
  if (setup_.unreachable) owners_.Report(setup_.unreachable());
  owners_.Tick(now);
  if (setup_.unreachable && now >= probe_at_) {
    probe_at_ = now + Beat::kWindow;
    Probe();
  }
  handed_over_ = owners_.handed_over();
  awaits_ = owners_.awaits_successor();
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < kPartitions; ++i) {
    Holding holding = owners_.At(i);
    const bool was_here = holdings_[i].kind == Holding::Kind::kHere;
    const bool is_here = holding.kind == Holding::Kind::kHere;
    if (is_here && !was_here) {
      if (holdings_[i].kind != Holding::Kind::kLapsed) ++counts_.taken_over;
      LogInfo("partition_taken").With("partition", i)
          << "this server owns partition " << i << " of the tags with buffer = owner";
    } else if (was_here && !is_here) {
      LogInfo("partition_left").With("partition", i)
          << "this server no longer owns partition " << i << " of the tags with buffer = owner"
          << (owners_.trouble().empty() ? "" : ": ") << owners_.trouble();
    }
    holdings_[i] = std::move(holding);
  }
  secret_ = owners_.secret();
  trouble_ = owners_.trouble();
}

std::string TagOwners::Trouble(const std::string& tag) const {
  std::unique_lock lock(mutex_);
  if (!trouble_.empty()) return trouble_;
  const std::string address = holdings_[PartitionOf(tag)].address;
  lock.unlock();
  const bool lost = !address.empty() && setup_.unreachable && Lists(setup_.unreachable(), address);
  return lost ? "this server cannot reach " + address : "";
}

void TagOwners::Take(const TagDefinition& tag, Count count, RangeSource::TakeDone done) {
  std::unique_lock lock(mutex_);
  const Holding& owner = holdings_[PartitionOf(tag.name)];
  if (owner.kind != Holding::Kind::kOther || owner.secret.zero()) {
    lock.unlock();
    return done(Range{});
  }
  ++counts_.asked;
  const std::string address = owner.address;
  PeerTake take{
      .secret = owner.secret.text(), .tag = tag.name, .form = FormOf(tag), .tls = owner.tls};
  lock.unlock();
  setup_.ask(address, std::move(take), std::move(count), std::move(done));
}

Result<Range> TagOwners::TakeFor(const PeerTake& take) {
  const Result<Nonce> secret = Nonce::Parse(take.secret);
  std::unique_lock lock(mutex_);
  if (!secret.ok() || secret->zero() || *secret != secret_) {
    return NotFound(Cat("its owner's address leads to ", setup_.address,
                        ", which is not the owner: it has just started, or two servers have the "
                        "same --advertise address"));
  }
  const auto served = served_.find(take.tag);
  const std::shared_ptr<OwnedNumbers> own =
      served == served_.end() ? nullptr : served->second.own.lock();
  if (own == nullptr) return NotFound(Cat("its owner ", setup_.address, " does not serve it"));
  if (served->second.form != take.form) {
    return NotFound(Cat("its owner ", setup_.address, " serves it by another definition"));
  }
  ++counts_.answered;
  lock.unlock();
  return own->Take(std::clamp<int64_t>(take.count, 1, RangedStrategy::kCountMax));
}

int64_t TagOwners::ChangeOf(const std::string& tag) const {
  const std::lock_guard lock(mutex_);
  return holdings_[PartitionOf(tag)].version;
}

TagOwner TagOwners::OwnerOf(const std::string& tag) const {
  const std::lock_guard lock(mutex_);
  return OwnerLocked(tag);
}

TagOwner TagOwners::OwnerLocked(const std::string& tag) const {
  const Holding& owner = holdings_[PartitionOf(tag)];
  return {owner.kind == Holding::Kind::kHere ? setup_.address : owner.address, owner.since};
}

OwnersReport TagOwners::report() const {
  const std::lock_guard lock(mutex_);
  OwnersReport report = counts_;
  for (const auto& [tag, served] : served_) {
    if (!served.own.expired()) report.tags.emplace(tag, OwnerLocked(tag).address);
  }
  for (const Holding& owner : holdings_) report.owned += owner.kind == Holding::Kind::kHere;
  return report;
}

}  // namespace firn
