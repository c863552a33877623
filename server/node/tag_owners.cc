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
// whether they reach it, and whether its tenure is valid. And asks those that cannot reach this
// server.
void TagOwners::Probe() {
  std::map<std::string, PeerTake> takes;  // by address
  std::map<std::string, std::shared_ptr<Tenant>> tenants;
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
      tenants[owner.address] = TenantLocked(owner.secret);
    }
  }
  for (const auto& [address, take] : takes) {
    setup_.ask(
        address, take, [] { return 1; },
        [tenant = tenants[address]](const Result<Range>& answer) {
          if (tenant == nullptr || (answer.ok() && answer->empty())) return;
          tenant->said = answer.ok() ? Tenant::Said::kValid : Tenant::Said::kOver;
        });
  }
}

void TagOwners::Tick(BootMs now) {
  if (!wanted_) return;
  const std::string unreachable = setup_.unreachable ? setup_.unreachable() : "";
  owners_.Report(unreachable);
  owners_.Tick(now);
  if (setup_.unreachable && now >= probe_at_) {
    probe_at_ = now + Beat::kWindow;
    Probe();
  }
  if (!look_until_) look_until_ = now + kFirstLook;
  has_looked_ = has_looked_ || owners_.has_looked() || now >= *look_until_;
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
  unreachable_ = unreachable;
  for (size_t i = 0; i < kPartitions; ++i) {
    known_[i] = IsConfirmedLocked(holdings_[i], now);
    const bool is_silent = holdings_[i].kind == Holding::Kind::kOther && !known_[i];
    if (is_silent) probe_at_ = std::min(probe_at_, now + Beat::kWindow / 4);
  }
  std::erase_if(tenants_, [this](const auto& tenant) {
    return std::ranges::find(holdings_, tenant.first, &Holding::secret) == holdings_.end();
  });
  is_valid_ = owners_.is_valid();
  secret_ = owners_.secret();
  trouble_ = owners_.trouble();
}

// Returns whether this server owns the partition, or its owner has confirmed its tenure and is
// reachable. A tenure that is new to this server counts as confirmed by the registry.
bool TagOwners::IsConfirmedLocked(const Holding& owner, BootMs now) {
  if (owner.kind == Holding::Kind::kHere) return true;
  if (owner.kind != Holding::Kind::kOther || owner.secret.zero()) return false;
  std::shared_ptr<Tenant>& tenant = tenants_[owner.secret];
  if (tenant == nullptr) tenant = std::make_shared<Tenant>(now + kConfirmedFor);
  switch (tenant->said.exchange(Tenant::Said::kNothing)) {
    case Tenant::Said::kNothing:
      break;
    case Tenant::Said::kValid:
      tenant->until = now + kConfirmedFor;
      break;
    case Tenant::Said::kOver:
      tenant->until = now;
      break;
  }
  return now < tenant->until && !Lists(unreachable_, owner.address);
}

std::shared_ptr<TagOwners::Tenant> TagOwners::TenantLocked(const Nonce& secret) const {
  const auto found = tenants_.find(secret);
  return found == tenants_.end() ? nullptr : found->second;
}

std::string TagOwners::Trouble(const std::string& tag) const {
  const std::lock_guard lock(mutex_);
  if (!trouble_.empty()) return trouble_;
  const std::string& address = holdings_[PartitionOf(tag)].address;
  const bool lost = !address.empty() && Lists(unreachable_, address);
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
  const std::shared_ptr<Tenant> tenant = TenantLocked(owner.secret);
  lock.unlock();
  setup_.ask(address, std::move(take), std::move(count),
             [tenant, done = std::move(done)](const Result<Range>& answer) {
               const bool gives = answer.ok() && !answer->empty();
               if (gives && tenant != nullptr) tenant->said = Tenant::Said::kValid;
               done(answer);
             });
}

Result<Range> TagOwners::TakeFor(const PeerTake& take) {
  const Result<Nonce> secret = Nonce::Parse(take.secret);
  std::unique_lock lock(mutex_);
  if (!secret.ok() || secret->zero() || *secret != secret_) {
    return NotFound(Cat("its owner's address leads to ", setup_.address,
                        ", which is not the owner: it has just started, or two servers have the "
                        "same --advertise address"));
  }
  if (take.tag.empty()) {
    if (is_valid_) return kConfirmed;
    return Unavailable(Cat("its owner ", setup_.address, " could not renew its beat in time"));
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
  const size_t partition = PartitionOf(tag);
  if (!known_[partition]) return {};
  const Holding& owner = holdings_[partition];
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
