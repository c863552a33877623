#include "server/front/reloads.h"

#include <cstddef>
#include <utility>

#include "common/base/files.h"
#include "common/base/fnv.h"

namespace firn::front {
namespace {

constexpr size_t kBytesMax = 16 << 20;

// An unreadable file counts as empty: `load` reports why it cannot be read.
uint64_t DigestOf(const std::string& path) {
  return Fnv1a(ReadRegularFile(path, kBytesMax).value_or(std::string()));
}

}  // namespace

void Reloads::Add(std::vector<NamedFile> files, std::function<Status()> load) {
  Group group{{}, std::move(load)};
  for (NamedFile& file : files) {
    if (file.path.empty()) continue;
    const uint64_t digest = DigestOf(file.path);
    group.files.push_back({std::move(file), digest});
  }
  groups_.push_back(std::move(group));
}

void Reloads::RunGroup(Group& group, ReloadReport& report) {
  using Outcome = ReloadedFile::Outcome;
  // Before `load`: the next reload reports changes made meanwhile.
  std::vector<uint64_t> digests;
  for (const Known& known : group.files) digests.push_back(DigestOf(known.file.path));
  const Status loaded = group.load();
  if (!loaded.ok()) report.faults.push_back(loaded.message());
  for (size_t i = 0; i < group.files.size(); ++i) {
    Known& known = group.files[i];
    Outcome outcome = known.digest == digests[i] ? Outcome::kUnchanged : Outcome::kChanged;
    if (!loaded.ok()) outcome = Outcome::kRefused;
    if (loaded.ok()) known.digest = digests[i];
    report.files.push_back({known.file.flag, known.file.path, outcome});
  }
}

ReloadReport Reloads::Run(WallMs now) {
  ReloadReport report{.at = now};
  for (Group& group : groups_) RunGroup(group, report);
  auto last = std::make_shared<const ReloadReport>(report);
  const std::lock_guard lock(mutex_);
  last_.swap(last);
  return report;
}

std::shared_ptr<const ReloadReport> Reloads::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

}  // namespace firn::front
