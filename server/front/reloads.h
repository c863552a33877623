#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "server/front/desk/reload_report.h"

namespace firn::front {

// Reads files again and reports which of them have changed. One thread at a time, except last().
class Reloads {
 public:
  struct NamedFile {
    std::string flag, path;
  };

  // Adds a group of files that `load` reads and accepts or refuses together. Files without a path
  // are ignored. The content of now counts as accepted, so `load` must read it first after this
  // call.
  void Add(std::vector<NamedFile> files, std::function<Status()> load);

  // Reads all files again, and accepts or refuses each group separately.
  ReloadReport Run(WallMs now);

  // Returns the report of the last run; null before the first. Any thread.
  std::shared_ptr<const ReloadReport> last() const;

 private:
  struct Known {
    NamedFile file;
    uint64_t digest;  // of the content that was accepted last
  };
  struct Group {
    std::vector<Known> files;
    std::function<Status()> load;
  };

  static void RunGroup(Group& group, ReloadReport& report);

  std::vector<Group> groups_;
  mutable std::mutex mutex_;
  std::shared_ptr<const ReloadReport> last_;  // under mutex_
};

}  // namespace firn::front
