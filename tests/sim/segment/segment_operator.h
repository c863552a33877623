#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "registry/cluster/tag_store.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/servers/provider.h"
#include "tests/sim/segment/segment_host.h"
#include "tests/sim/segment/segment_violation.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tools/firn/restore_tags.h"

namespace firn {

inline constexpr std::string_view kSimUuid = "6f9619ff-8b86-4d11-b42d-00c04fc964ff";

// Who makes the cluster of a simulation and its tags, edits them while they are served, deletes
// some by hand, and restores what was lost: by the code of the commands, and by what an operator
// can know.
class SegmentOperator {
 public:
  explicit SegmentOperator(SegmentShared& shared) : shared_(shared) {}

  void MakeCluster();

  // One edit of some tag, or a new one. False: a node was deleted, which loses data; only where
  // that may be.
  bool Edit(bool may_delete);

  // As `firn restore` does it: what is in the tree, what servers that run report, the highest
  // number of each tag that its users have (--tag_high), and a word for each tag, as it was defined
  // last and as far as one of the servers knows it. The gap is the least that there is.
  void Restore(std::vector<ProviderReport> reports);

  // A moment some time before the next midnight of some dated tag's zone.
  WallMs BeforeMidnight();

  // Every tag is to be served.
  void EnableAll();

  // That there have ever been.
  size_t tags() const { return last_.size(); }

 private:
  static constexpr size_t kTagsMax = 12;

  void Connect();
  std::vector<SaidTag> Words(const std::vector<ProviderReport>& reports);
  void Create(TagDefinition tag);
  void CreateFresh();
  void Delete(const std::string& name);
  void DeleteAnyhow(const std::string& name);
  void EditForm(TagDefinition& tag);
  void EditRest(TagDefinition& tag);
  TagDefinition DatedTag(const std::string& name);
  std::string AnyZone();
  void Define(const TagDefinition& tag);
  void Change(const std::string& name, const TagDefinition& tag);
  const TagDefinition& AnyTag();
  bool OneIn(uint64_t n) { return shared_.dice.Below(n) == 0; }

  SegmentShared& shared_;
  // For one verb: what is lost may take sessions with it.
  std::optional<MemoryCoordinator> memory_{};
  std::optional<BlockingCoordinator> registry_{};
  std::optional<TagStore> store_{};
  bool serves_undefined_ = false;
  std::map<std::string, TagDefinition> last_;  // as last defined
  std::string newest_{};                       // whose form is free the longest
  std::string deleted_{};                      // a name that is free again
  int fresh_ = 0;                              // names that were made up
};

}  // namespace firn
