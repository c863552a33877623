#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "registry/cluster/tag_node.h"
#include "registry/state/known_tags.h"
#include "server/store/control_thread.h"
#include "server/store/store_thread.h"

namespace firn {

// Returns the node in the form that KnownTag contains. Because the ledger changes constantly, only
// the fact remains whether ids of this form may have been issued. `before` is the previously known
// tag.
TagNode WithoutLedger(TagNode node, const KnownTag& before);

// Returns whether ids of `before` may have been issued that look unlike those of `now`.
bool IsForged(const TagDefinition& before, const TagDefinition& now);

// Logs an error if `before` has buffer = owner and `now` does not: no edit removes an owner.
void NoteLostOwner(const TagDefinition& before, const TagDefinition& now);

// The ledgers of a cluster's tags that this server has read. In a registry that loses no data, high
// + returned never falls. A reading with a lower sum is ignored, unless its `high` is above all
// known numbers.
class KnownLedgers {
 public:
  // Records a reading. Returns true if it is new.
  bool Note(const std::string& tag, int64_t high, int64_t returned);

  // Returns `tags` with these ledgers in their nodes.
  KnownTags In(KnownTags tags) const;

 private:
  struct At {
    int64_t high = 0;
    int64_t returned = 0;

    friend bool operator==(const At&, const At&) = default;
  };

  std::map<std::string, At> ledgers_{};
};

// Stores tag definitions across restarts. So a start without the registry can serve the known tags,
// and refuses names whose definitions were never read.
class TagMemory {
 public:
  virtual ~TagMemory() = default;

  // `done` is called later, on the control thread, with the stored tags of the cluster; kNotFound
  // if there are none, or the reason why they are unusable.
  using Loaded = std::function<void(Result<KnownTags> kept)>;
  virtual void Read(const std::string& uuid, Loaded done) = 0;

  // `done` is called later, on the control thread: ok once the tags are durable. After an error,
  // nothing is stored. At most one write at a time.
  using Kept = std::function<void(const Status& kept)>;
  virtual void Keep(const std::string& uuid, const KnownTags& tags, Kept done) = 0;

  // Sets how implementations with their own thread call `done` on the control thread. Must be
  // called first.
  virtual void SetControl(const PostToControl&) {}
};

// A TagMemory in a state folder, with one file per cluster: <stem>.<uuid>.tags. A separate thread
// reads and writes the files, because a disk may stall. If new content cannot be written, the file
// is removed, because a start without definitions is safer than one with outdated ones.
//
// Read, Keep: one thread. Destroy before the control thread ends.
class KeptTags final : public TagMemory {
 public:
  // `stem` is the common beginning of the files' paths.
  explicit KeptTags(std::string stem) : stem_(std::move(stem)) {}

  // Reads the file on the caller's thread. Blocks.
  static Result<KnownTags> ReadFrom(const std::string& stem, const std::string& uuid);

  void Read(const std::string& uuid, Loaded done) override;
  void Keep(const std::string& uuid, const KnownTags& tags, Kept done) override;
  void SetControl(const PostToControl& control) override { control_ = control; }

 private:
  static std::string PathOf(const std::string& stem, const std::string& uuid) {
    return stem + "." + uuid + ".tags";
  }

  const std::string stem_;
  PostToControl control_;
  StoreThread thread_;  // destroyed before the members that it uses
};

}  // namespace firn
