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

// Returns a node as KnownTag has it: of the ledger, which moves all the time, only whether ids of
// this form may be out. `before`: the tag as it was known.
TagNode WithoutLedger(TagNode node, const KnownTag& before);

// The ledgers of a cluster's tags, as one server knows them. What never falls in a registry that
// loses nothing is high + returned. A reading in which it has fallen changes nothing here, unless
// it continues above everything known.
class KnownLedgers {
 public:
  // Returns true if the reading changed something.
  bool Note(const std::string& tag, int64_t high, int64_t returned);

  // `tags` with these ledgers in their nodes.
  KnownTags In(KnownTags tags) const;

 private:
  struct At {
    int64_t high = 0;
    int64_t returned = 0;

    friend bool operator==(const At&, const At&) = default;
  };

  std::map<std::string, At> ledgers_{};
};

// Remembers tags beyond the life of the process, so that a start without the registry serves what
// it is to serve, and nothing under a name whose definition it has never read.
class TagMemory {
 public:
  virtual ~TagMemory() = default;

  // `done` is called later, on the control thread, with the stored tags of the cluster; kNotFound,
  // or why they are unusable.
  using Loaded = std::function<void(Result<KnownTags> kept)>;
  virtual void Read(const std::string& uuid, Loaded done) = 0;

  // `done` is called later, on the control thread: ok once the tags are durable; after an error
  // nothing is stored. One at a time.
  using Kept = std::function<void(const Status& kept)>;
  virtual void Keep(const std::string& uuid, const KnownTags& tags, Kept done) = 0;

  // How implementations with a thread of their own call `done` on the control thread. Call first.
  virtual void SetControl(const PostToControl&) {}
};

// A TagMemory in a state folder, with one file per cluster: <stem>.<uuid>.tags. Files are read and
// written on a thread of its own, since a disk may stall. If new content cannot be written, the
// file is removed: a start without definitions is safer than one with old ones.
//
// Read, Keep: one thread. Destroy before the control thread ends.
class KeptTags final : public TagMemory {
 public:
  // `stem`: the folder and the first part of the file's name.
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
