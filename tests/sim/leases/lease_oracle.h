#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/units.h"

namespace firn {

// Records which ticks of each machine id each holder may use, or has used. A holder is a claim of a
// server, a program with a lease, or another system. Throws a Violation if a tick ever has two
// holders.
//
// Holders of one group know the same claim or lease, because a machine was copied while it ran.
// Share and Excuse set the ticks that copies may duplicate.
class LeaseOracle {
 public:
  using Holder = size_t;

  // Adds a holder without ticks. `group` names its claim or lease.
  Holder Begin(MachineId machine, std::string name, const std::string& group, Tick from);
  // Records that the holder may use, or has used, every tick below `until`. Ignores an earlier end.
  void Extend(Holder holder, Tick until);
  // Records that the holder has stopped, and has used no tick at or above `until`.
  void Shrink(Holder holder, Tick until);

  // Returns the first tick above all ticks that the holder may use.
  Tick EndOf(Holder holder) const { return spans_[holder].until; }

  // Permits holders of the group to share ticks below `until`.
  void Share(const std::string& group, Tick until);
  // Permits other holders to have the group's ticks in [from, until), too.
  void Excuse(const std::string& group, Tick from, Tick until);
  // Like Excuse, up to the end of Share.
  void ExcuseShared(const std::string& group, Tick from);

  // Returns the number of machine ids that holders of several groups have had.
  int64_t passed_on() const;
  int64_t holders() const { return static_cast<int64_t>(spans_.size()); }

 private:
  struct Span {
    MachineId machine;
    std::string name;
    size_t group = 0;
    Tick from;
    Tick until;
  };
  // The ticks of a group that may be duplicated, among its holders and by others.
  struct Group {
    std::string name;
    Tick shared_until{INT64_MIN};
    Tick excused_from{INT64_MAX};
    Tick excused_until{INT64_MIN};
  };

  size_t GroupNamed(const std::string& name);
  void Compare(const Span& grown, const Span& other) const;

  std::vector<Span> spans_;
  std::vector<Group> groups_;
  std::map<std::string, size_t> group_names_;
  std::map<uint32_t, std::vector<Holder>> holders_;  // by machine id
};

}  // namespace firn
