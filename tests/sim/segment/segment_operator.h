#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "registry/cluster/tag_store.h"
#include "registry/operate/backup.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/sim/segment/segment_host.h"
#include "tests/sim/segment/segment_restorer.h"
#include "tests/sim/segment/segment_violation.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

inline constexpr std::string_view kSimUuid = "6f9619ff-8b86-4d11-b42d-00c04fc964ff";

// The operator of a simulation: creates the cluster and its tags, edits them while they are served,
// deletes some by hand, and restores lost data, with the code of the commands and the knowledge of
// an operator.
class SegmentOperator {
 public:
  explicit SegmentOperator(SegmentShared& shared) : shared_(shared), restorer_(shared) {}

  // `ordered`: with tags whose numbers have owners.
  void MakeCluster(bool ordered);

  // Runs `firn backup` at a loss of data, or before. Returns whether it succeeded.
  bool TakeDocument();
  void TakeOlderDocument();

  // Edits some tag, or creates one. If `may_delete`, it may also delete a tag's node, which loses
  // data. Then returns false.
  bool Edit(bool may_delete);

  // Restores lost data, perhaps incompletely unless `completely` (segment_restorer.h). `document`:
  // the last document is of the registry at the loss. Returns whether the registry is restored.
  bool Restore(bool document, bool completely);

  // Returns a moment shortly before the next midnight of some dated tag's zone.
  WallMs BeforeMidnight();

  // Enables every tag, and corrects definitions that no server can serve.
  void CorrectAll();

  // The number of tags that ever existed.
  size_t tags() const { return last_.size(); }

 private:
  static constexpr size_t kTagsMax = 12;
  static constexpr size_t kOlderMax = 2;

  void Connect();
  Result<Backup> ReadDocument();  // a file of `firn backup`
  // Checks the restored tags, and takes them as the operator's last definitions.
  void Adopt(const SegmentRestorer::Known& known);
  void Create(TagDefinition tag);
  void CreateFresh();
  void Delete(const std::string& name);
  void DeleteAnyhow(const std::string& name);
  void EditForm(TagDefinition& tag);
  void EditRest(TagDefinition& tag);
  void EditIntoUnservable(TagDefinition& tag);
  bool EditForMutant();
  void EditData();
  TagDefinition DatedTag(const std::string& name);
  std::string AnyZone();
  void Define(const TagDefinition& tag);
  void Change(const std::string& name, const TagDefinition& tag);
  const TagDefinition& AnyTag();
  bool OneIn(uint64_t n) { return shared_.dice.Below(n) == 0; }

  SegmentShared& shared_;
  SegmentRestorer restorer_;
  // A connection for one verb only, because a loss of data may end sessions.
  std::optional<MemoryCoordinator> memory_{};
  std::optional<BlockingCoordinator> registry_{};
  std::optional<TagStore> store_{};
  bool serves_undefined_ = false, ordered_ = false;
  std::map<std::string, TagDefinition> last_;  // last definitions
  std::string newest_{};   // the newest tag, whose form is most likely not fixed yet
  std::string deleted_{};  // a name that may be used again
  std::map<std::string, TagDefinition> taken_away_{};  // the last definitions of deleted tags
  int fresh_ = 0;                                      // number of invented names
  Backup document_;
  std::vector<Backup> older_;
  std::set<std::string> issued_{};      // tags with numbers at that time
  std::optional<TagListing> before_{};  // when the first run of an unfinished restore began
};

}  // namespace firn
