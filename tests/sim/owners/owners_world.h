#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "registry/cluster/records.h"
#include "tests/sim/owners/owners_host.h"

namespace firn {

// Several servers that own partitions, in virtual time. Processes are killed, paused, and made to
// hand over. Requests and answers are lost or late. Connections break and sessions end. Clock rates
// are up to a tenth off. Machines are copied. The registry is rolled back to an older state, and an
// operator changes, freezes and restores it. A seed determines the world, so a run can be repeated
// exactly.
//
// Throws a Violation
//  1. if two processes may take numbers of one partition at the same true time,
//  2. if a number is not larger than all numbers returned before an owner took it,
//  3. if a number is returned twice,
//  4. if a partition issues no numbers after the end of all faults,
//  5. if a process may take numbers later than a window after the cluster was frozen,
//  6. if a partition is assigned to a tenure that has ended,
//  7. if, after the end of all faults, a partition has no owner for a second while all servers but
//     one stop together, and this one has just started.
// Two copies of a machine are exempt from 1 until a window after the copying, or after a later
// rollback of the registry, and from 2 and 3 for ranges that were requested until then. Until then,
// a third process may own a partition of a copy that has not renewed it since the copying, and its
// ranges may be below numbers that a copy has returned. If a rollback of the registry keeps the
// sessions, all processes are exempt from 1 until a window after the rollback, from 2 for ranges
// that were requested until then, and from 3 for ranges that were requested before the rollback.
class OwnersWorld {
 public:
  OwnersWorld(uint64_t seed, OwnersMutant mutant, bool trace);
  ~OwnersWorld();

  void Run();

  uint64_t steps() const { return steps_; }
  uint64_t digest() const { return tree_.digest(); }
  int64_t numbers() const { return oracle_.count(); }
  int64_t takeovers() const { return takeovers_; }
  int64_t releases() const { return releases_; }
  int64_t copies() const { return copies_; }
  int64_t rollbacks() const { return rollbacks_; }

 private:
  // Two processes with the same memory, because one is a copy of the other.
  struct Kin {
    int64_t first, second;
    BootMs until;       // until then, both may take numbers of a partition
    BootMs term_until;  // no term ended later at the copying; on their clocks
  };

  void MakeCluster();
  void Apply(std::vector<Write> writes);
  void Step();
  void Strike();
  void Change(OwnersHost& host);
  void Copy(OwnersHost& host);
  void CutOff(OwnersHost& host);
  void Release(OwnersHost& host);
  void StopTogether(OwnersHost& stays);
  void LoseRenewal(OwnersHost& host);
  void HoldRenewal(OwnersHost& host);
  void PauseAndReturn(OwnersHost& host);
  void GoBackBeforeTakeover(int steps_max);
  void GoBack(const std::shared_ptr<MemoryTree::Image>& image, size_t partition, int steps_max);
  void RollBack(MemoryTree::Image image);
  void EditRoot();
  void CheckTerms() const;
  void CheckTakeovers(bool may_be_old);
  bool MayBothOwn(size_t partition, const OwnersProcess& a, const OwnersProcess& b) const;
  static BootMs LongestTerm(const OwnersHost& host, BootMs renewed);
  void DemandService();
  std::string WhyAll(size_t partition) const;
  void DemandHandOver();
  void PassCalmly(Milliseconds time, const OwnersHost* down);
  void CountWrites(const OwnersHost& host);
  void Kill(OwnersHost& host);
  bool MayStart(const OwnersHost& host) const {
    return std::any_of(hosts_.begin(), hosts_.begin() + static_cast<std::ptrdiff_t>(servers_),
                       [&](const auto& server) { return server.get() == &host; });
  }
  void Next(std::function<void()> fault, uint64_t steps_max);
  bool OneIn(uint64_t n) { return dice_.Below(n) == 0; }
  OwnersHost& AnyHost() { return *hosts_[dice_.Below(hosts_.size())]; }
  int64_t AnyRate();
  FaultPlan NewPlan();
  void Trace(const std::string& what) const;

  SeededEntropy dice_;
  const bool trace_;
  VirtualClock clock_;
  MemoryTree tree_;
  OwnersOracle oracle_;
  OwnersShared shared_;
  FaultRates rates_;
  SeededEntropy fault_dice_;
  const bool copies_machines_, goes_back_, keeps_sessions_;
  const uint64_t calm_;  // steps between two faults, on average
  ClusterMeta meta_;
  uint64_t checked_digest_ = 0;
  std::array<Nonce, kPartitions> changes_;  // the last change of each partition
  OwnersHost* sleeper_ = nullptr;           // paused until `next_fault_`
  BootMs frozen_at_;
  BootMs back_at_{-1};  // time of the last rollback, if rollbacks keep sessions
  std::vector<std::unique_ptr<OwnersHost>> hosts_;
  size_t servers_ = 0;  // the first hosts; the others are for copies
  std::vector<Kin> kin_;
  std::vector<MemoryTree::Image> images_;
  std::function<void()> next_fault_{};  // the second part of a fault
  int next_in_ = 0;                     // steps until `next_fault_`
  uint64_t steps_ = 0;
  int64_t takeovers_ = 0, releases_ = 0, copies_ = 0, rollbacks_ = 0;
};

}  // namespace firn
