#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "registry/owners/owner_records.h"
#include "tests/sim/owners/owners_world.h"
#include "tests/sim/violation.h"

namespace firn {

// Returns until when a process that renews at `renewed` may take numbers.
BootMs OwnersWorld::LongestTerm(const OwnersHost& host, BootMs renewed) {
  return renewed + host.window() * 10 / 9 + Milliseconds(2);
}

// Returns whether both processes may own the partition at the same time. If one of two copies ends
// its tenure or gives the partition up, a third process may take it while the other copy continues
// the term that it had at the copying.
bool OwnersWorld::MayBothOwn(size_t partition, const OwnersProcess& a,
                             const OwnersProcess& b) const {
  // If rollbacks keep sessions, all hosts have the same window.
  if (back_at_.ms() >= 0 && clock_.Boot() <= LongestTerm(*hosts_.front(), back_at_)) return true;
  return std::any_of(kin_.begin(), kin_.end(), [&](const Kin& kin) {
    const auto is_of = [&](const OwnersProcess& process) {
      return kin.first == process.number() || kin.second == process.number();
    };
    const auto continues = [&](const OwnersProcess& process) {
      return is_of(process) && process.owners().term(partition).until() <= kin.term_until;
    };
    if (clock_.Boot() > kin.until) return false;
    return (is_of(a) && is_of(b)) || continues(a) || continues(b);
  });
}

void OwnersWorld::CheckTerms() const {
  for (size_t partition = 0; partition < kPartitions; ++partition) {
    const OwnersHost* owner = nullptr;
    for (const auto& host : hosts_) {
      if (!host->up() || !host->process().MayTake(partition)) continue;
      if (meta_.frozen && clock_.Boot() > LongestTerm(*host, frozen_at_)) {
        throw Violation(5, "a process continues under a frozen cluster: " + host->Why(partition));
      }
      if (owner != nullptr && !MayBothOwn(partition, owner->process(), host->process())) {
        throw Violation(1, "two processes own partition " + std::to_string(partition) + ": " +
                               owner->Why(partition) + ", " + host->Why(partition));
      }
      owner = host.get();
    }
  }
}

// `may_be_old`: does not check the present owners, whose tenures may have ended since they took the
// partitions.
void OwnersWorld::CheckTakeovers(bool may_be_old) {
  if (checked_digest_ == tree_.digest()) return;
  checked_digest_ = tree_.digest();
  for (size_t i = 0; i < kPartitions; ++i) {
    const std::optional<Node> node = tree_.Peek(PartitionPath(i));
    if (!node) continue;
    const PartitionOwner owner = ParsePartitionOwner(node->data).value();
    if (std::exchange(changes_[i], owner.change) == owner.change) continue;
    if (owner.tenure.zero() || may_be_old) continue;
    const std::optional<Node> beat = tree_.Peek(BeatPath(owner.tenure));
    if (!beat || ParseBeat(beat->data)->ended) {
      throw Violation(
          6, Cat("partition ", i, " was given to a tenure of ", owner.address, " that has ended"));
    }
  }
}

// Lets time pass without faults. Restarts servers, except `down`.
void OwnersWorld::PassCalmly(Milliseconds time, const OwnersHost* down) {
  for (const BootMs until = clock_.Boot() + time; clock_.Boot() < until;) {
    clock_.Advance(Milliseconds(10));
    for (const auto& host : hosts_) {
      if (!host->up() && MayStart(*host) && host.get() != down) host->Start({}, false);
      host->Round();
    }
    CheckTerms();
  }
}

// Describes the state of the partition in all processes.
std::string OwnersWorld::WhyAll(size_t partition) const {
  std::string why;
  for (const auto& host : hosts_) {
    if (host->up()) why += "; " + host->Why(partition);
  }
  return why;
}

// Restarts one server, perhaps at once, or ends its session. Soon stops all others together.
void OwnersWorld::DemandHandOver() {
  OwnersHost& young = *hosts_[dice_.Below(servers_)];
  PassCalmly(Milliseconds(15'000), nullptr);
  const bool restarts = copies_machines_ || OneIn(2);  // one that can be copied gets no notices
  Trace(Cat("only ", young.address(), restarts ? ", which is restarted," : "", " will run"));
  if (!restarts) tree_.Expire(young.process().link()->session());
  if (restarts) Kill(young);
  if (restarts && OneIn(2)) PassCalmly(Milliseconds(15'000), &young);
  // By then, the beat of a server with a new session says `young`.
  const int64_t least = restarts ? 10 : 100;
  PassCalmly(Milliseconds(least + static_cast<int64_t>(dice_.Below(4'000))), nullptr);
  std::set<const OwnersHost*> told{&young};
  std::vector<std::optional<BootMs>> owned(kPartitions);  // those of a killed server have no owner
  for (int i = 0; i < 800; ++i) {
    // A few milliseconds lie between the stops.
    for (const auto& host : hosts_) {
      const bool stops = i > 8 || OneIn(4);
      if (stops && told.insert(host.get()).second) host->HandOver();
    }
    clock_.Advance(Milliseconds(static_cast<int64_t>(dice_.Below(12))));
    for (const auto& host : hosts_) host->Round();
    CheckTerms();
    for (size_t partition = 0; partition < kPartitions; ++partition) {
      const bool is_owned = std::ranges::any_of(hosts_, [&](const auto& host) {
        return host->up() && host->process().MayTake(partition);
      });
      if (is_owned) owned[partition] = clock_.Boot();
      if (!owned[partition] || clock_.Boot() - *owned[partition] < Milliseconds(1'000)) continue;
      throw Violation(
          7, Cat("partition ", partition, " has no owner while servers stop", WhyAll(partition)));
    }
  }
}

// Ends all faults. Then every partition must issue numbers.
void OwnersWorld::DemandService() {
  Trace("all faults end");
  while (meta_.frozen) EditRoot();
  for (const auto& host : hosts_) {
    if (!host->up() && MayStart(*host)) host->Start({}, false);
    if (!host->up()) continue;
    host->Pause(false);
    host->Permit(true);
    host->SetPlan({});
    host->process().link()->Reconnect();
  }
  std::vector<int64_t> before;
  for (size_t i = 0; i < shared_.partitions; ++i) before.push_back(oracle_.Highest(i));
  for (int i = 0; i < 6'000; ++i) {
    PassCalmly(Milliseconds(10), nullptr);
    bool all = true;
    for (size_t j = 0; j < shared_.partitions; ++j) all &= oracle_.Highest(j) > before[j];
    if (all) return;
  }
  std::string why;
  for (size_t i = 0; i < shared_.partitions; ++i) why += WhyAll(i);
  throw Violation(4, "no numbers after the end of all faults" + why);
}

}  // namespace firn
