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

// Reads files again, and reports which of them have changed. One thread at a time, except for
// last().
class Reloads {
 public:
  struct NamedFile {
    std::string flag, path;
  };

  // `load` reads all of these files again, and accepts all or none. Files without a path are left
  // out. Notes their content: `load` reads them for the first time only afterwards.
  void Add(std::vector<NamedFile> files, std::function<Status()> load);

  // Reads everything again. Each group of files is accepted or refused by itself.
  ReloadReport Run(WallMs now);

  // Returns the report of the last run; null before the first. Any thread.
  std::shared_ptr<const ReloadReport> last() const;

 private:
  struct Known {
    NamedFile file;
    uint64_t digest;  // of its content, when it was accepted last
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
