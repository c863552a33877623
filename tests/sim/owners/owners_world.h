#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "registry/cluster/records.h"
#include "tests/sim/owners/owners_host.h"

namespace firn {

// Several servers that own partitions in virtual time. Processes are killed, paused and told to
// hand over; requests and answers are lost or late; connections break and sessions end; clocks run
// at rates that are up to a tenth off; machines are copied; the registry goes back in time, and an
// operator changes, freezes and restores it. One seed is one world, and replays exactly.
//
// Throws a Violation
//  1. when two processes may take numbers of one partition at the same real time,
//  2. when a number is not larger than all that were answered before it was taken,
//  3. when a number is answered twice,
//  4. when a partition gives no numbers after the end of all faults,
//  5. when a process may take numbers later than a window after the cluster was frozen,
//  6. when a partition is given to a tenure that has ended.
// Two copies of one machine are exempt from 1 until a window after the copying, and from 2 and 3
// for the ranges that were requested until then. So are all processes where the registry goes back
// in time and keeps its sessions: until a window after that, and for ranges from before.
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
  // Two processes with one memory.
  struct Kin {
    int64_t first, second;
    BootMs until;  // both may take
  };

  void MakeCluster();
  void Apply(std::vector<Write> writes);
  void Step();
  void Strike();
  void Change(OwnersHost& host);
  void Copy(OwnersHost& host);
  void CutOff(OwnersHost& host);
  void Release(OwnersHost& host);
  void LoseRenewal(OwnersHost& host);
  void HoldRenewal(OwnersHost& host);
  void PauseAndReturn(OwnersHost& host);
  void GoBackBeforeTakeover(int steps_max);
  void GoBack(const std::shared_ptr<MemoryTree::Image>& image, size_t partition, int steps_max);
  void RollBack(MemoryTree::Image image);
  void EditRoot();
  void CheckTerms() const;
  void CheckTakeovers(bool may_be_old);
  bool AreKin(int64_t a, int64_t b) const;
  static BootMs LongestTerm(const OwnersHost& host, BootMs renewed);
  void DemandService();
  void CountWrites(const OwnersHost& host);
  void Kill(OwnersHost& host);
  bool MayStart(const OwnersHost& host) const;
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
  std::array<Nonce, kPartitions> changes_;  // the last of each partition
  OwnersHost* sleeper_ = nullptr;           // is paused until `next_fault_`
  BootMs frozen_at_;
  BootMs back_at_{-1};  // when the registry went back last, if it keeps sessions
  std::vector<std::unique_ptr<OwnersHost>> hosts_;
  size_t servers_ = 0;  // of the hosts; the others are for copies
  std::vector<Kin> kin_;
  std::vector<MemoryTree::Image> images_;
  std::function<void()> next_fault_{};  // after another one
  int next_in_ = 0;                     // steps until then
  uint64_t steps_ = 0;
  int64_t takeovers_ = 0, releases_ = 0, copies_ = 0, rollbacks_ = 0;
};

}  // namespace firn
