#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace firn {

// A control group with one limit, in either of the kernel's hierarchies. The destructor removes it,
// and waits until its processes have ended.
class ControlGroup {
 public:
  // `name` and `old_name` are the limit's names in the two hierarchies.
  ControlGroup(const std::string& controller, const std::string& name, const std::string& old_name,
               int64_t limit);
  // Limits memory.
  explicit ControlGroup(int64_t bytes)
      : ControlGroup("memory", "memory.max", "memory.limit_in_bytes", bytes) {}
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;
  ~ControlGroup() { Remove(); }

  // False: this process may not create such a group.
  bool ok() const { return ok_; }

  // The command that runs another command in the group.
  std::vector<std::string> wrapper() const;

  // How many of its processes the kernel killed because they needed more memory; -1: unknown.
  int64_t OomKills() const;

 private:
  void MakeIn(const std::string& parent, const std::string& name, int64_t limit);
  void Remove() const;

  std::string folder_;
  bool ok_ = false;
};

}  // namespace firn
