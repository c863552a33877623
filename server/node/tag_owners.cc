#include "server/node/tag_owners.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/log/log.h"

namespace firn {

TagOwners::TagOwners(Coordinator& coordinator, Entropy& entropy, const Clock& clock,
                     OwnersSetup setup)
    : clock_(clock),
      setup_(std::move(setup)),
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

bool TagOwners::has_tags() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(served_, [](const auto& tag) { return !tag.second.own.expired(); });
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
// whether they reach it, and which partitions it owns. And asks those that cannot reach this
// server.
void TagOwners::Probe() {
  struct Question {
    std::string address;
    std::optional<bool> tls;
    std::array<std::shared_ptr<Tenant>, kPartitions> tenants{};
  };
  std::map<Nonce, Question> questions;  // by the secret of the tenure
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < kPartitions; ++i) {
      const Holding& owner = holdings_[i];
      if (owner.kind != Holding::Kind::kOther || owner.secret.zero()) continue;
      Question& question = questions[owner.secret];
      question.address = owner.address;
      question.tls = owner.tls;
      question.tenants[i] = tenants_[i];
    }
  }
  const auto ask = [this](const Nonce& secret, const Question& question) {
    const auto done = [tenants = question.tenants](const Result<Range>& answer) {
      if (answer.ok() && answer->empty()) return;
      for (size_t i = 0; i < kPartitions; ++i) {
        if (tenants[i] == nullptr || (answer.ok() && !Confirms(*answer, i))) continue;
        tenants[i]->said = answer.ok() ? Tenant::Said::kValid : Tenant::Said::kOver;
      }
    };
    setup_.ask(
        question.address, {.secret = secret.text(), .tag = {}, .form = {}, .tls = question.tls},
        [] { return 1; }, done);
  };
  for (const auto& [secret, question] : questions) ask(secret, question);
  for (const std::string& address : owners_.listed_by()) {
    const auto is_asked = [&](const auto& asked) { return asked.second.address == address; };
    if (std::ranges::none_of(questions, is_asked)) ask({}, {address, owners_.TlsOf(address)});
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
  const bool starts = !has_looked_;
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
    known_[i] = IsConfirmedLocked(i, now, starts);
    const bool is_silent = holdings_[i].kind == Holding::Kind::kOther && !known_[i];
    const Milliseconds ask_in = starts ? Milliseconds(0) : Beat::kWindow / 4;
    if (is_silent) probe_at_ = std::min(probe_at_, now + ask_in);
  }
  secret_ = owners_.secret();
  trouble_ = owners_.trouble();
}

// Returns whether this server owns the partition, or its owner has confirmed that and is reachable.
// An owner that is new to this server counts as confirmed by the registry, unless the server
// starts: then the owner may have ended long ago.
bool TagOwners::IsConfirmedLocked(size_t partition, BootMs now, bool starts) {
  const Holding& owner = holdings_[partition];
  if (owner.kind == Holding::Kind::kHere) return true;
  if (owner.kind != Holding::Kind::kOther || owner.secret.zero()) return false;
  std::shared_ptr<Tenant>& tenant = tenants_[partition];
  if (tenant == nullptr || tenant->secret != owner.secret || tenant->version != owner.version) {
    tenant = std::make_shared<Tenant>(owner, starts ? now : now + kConfirmedFor);
  }
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

// Returns a bit for each partition that this server owns now.
int64_t TagOwners::Owned() const {
  const BootMs now = clock_.Boot();
  int64_t partitions = 0;
  for (size_t i = 0; i < kPartitions; ++i) {
    const OwnedTerm& term = owners_.term(i);
    if (term.Holds(term.Load(), now)) partitions |= int64_t{1} << i;
  }
  return partitions;
}

bool TagOwners::HasTerm() const {
  for (size_t i = 0; i < kPartitions; ++i) {
    if (owners_.term(i).Load() != 0) return true;
  }
  return false;
}

std::string TagOwners::Trouble(const std::string& tag) const {
  const std::lock_guard lock(mutex_);
  const std::string& address = holdings_[PartitionOf(tag)].address;
  const bool lost = !address.empty() && Lists(unreachable_, address);
  return lost ? "this server cannot reach " + address : trouble_;
}

void TagOwners::Take(const TagDefinition& tag, Count count, RangeSource::TakeDone done) {
  std::unique_lock lock(mutex_);
  const size_t partition = PartitionOf(tag.name);
  const Holding& owner = holdings_[partition];
  if (owner.kind != Holding::Kind::kOther || owner.secret.zero()) {
    lock.unlock();
    return done(Range{});
  }
  ++counts_.asked;
  const std::string address = owner.address;
  PeerTake take{
      .secret = owner.secret.text(), .tag = tag.name, .form = FormOf(tag), .tls = owner.tls};
  const std::shared_ptr<Tenant> tenant = tenants_[partition];
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
    const bool has_term = HasTerm();  // before Owned, because a term may begin meanwhile
    const int64_t owned = Owned();
    if (owned != 0) return Confirmation(owned);
    if (!has_term) return Range{};
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
