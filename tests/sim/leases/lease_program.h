#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "client/lease/leased_ids.h"
#include "client/lease/lessee.h"
#include "common/time/entropy.h"
#include "tests/sim/leases/lease_net.h"
#include "tests/sim/leases/lease_shared.h"
#include "tests/sim/sim_clock.h"

namespace firn {

// A machine and the program that may run on it. The program issues ids under leases with the
// product's Lessee.
//
// The machine can be copied while it runs. Therefore a second process is kept in exactly the state
// of the first: it gets the same answers and makes the same calls, but its requests are not sent.
class LeaseProgram {
 public:
  // All references must outlive it.
  LeaseProgram(LeaseShared& shared, LeaseNet& net, int index);
  ~LeaseProgram();

  void Start();
  void Kill();
  // Releases its lease, and ends when a server has answered, or after a short time.
  void Leave();
  // Takes ids, reads answers and sends requests.
  void Round();
  // Returns the copy of the running machine; null if there is none.
  std::unique_ptr<LeaseProgram> Copy(int index);

  bool running() const { return process_ != nullptr; }
  // Returns whether it can issue an id now.
  bool Serves() { return running() && TakeOne(); }
  // Name of the process.
  const std::string& name() const;
  // The id of its newest lease.
  const std::string& lease() const;
  // Its id clock, which may be ahead of all clocks after a restore.
  WallMs id_time() const;
  void EndFaults();

  HostClock& clock() { return clock_; }
  BootMs paused_until{};
  bool leaves_next = false;  // at its next round

 private:
  class Process;

  bool TakeOne();
  void TakeSome();
  void Hear(uint64_t number, const LeaseOutcome& outcome);
  void Adopt(uint64_t number, const LeaseGrant& terms, Tick until);
  void NoteRelease(const LeaseRequest& ask);
  void Trace(const std::string& what) const;

  LeaseShared& shared_;
  LeaseNet& net_;
  const std::string name_;
  HostClock clock_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<Process> second_;  // mirrors the first
};

}  // namespace firn
