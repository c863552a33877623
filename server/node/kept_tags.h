#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "registry/cluster/tag_node.h"
#include "server/store/control_thread.h"
#include "server/store/store_thread.h"

namespace firn {

// A tag as last read. In memory `high` only says whether ids may have been issued: 0 or 1. In the
// file `high` and `returned` are the ledger's, at most a minute old.
struct KnownTag {
  enum class State {
    kFine,
    kUnreadable,  // its node exists and cannot be parsed
    kLost,        // its node existed and is missing
  };

  State state = State::kFine;
  TagNode node{};  // the last readable node

  friend bool operator==(const KnownTag&, const KnownTag&) = default;
};

// Returns the node without its ledger, which changes often: `high` becomes 1 if ids of this form
// may have been issued, else 0. `before`: the tag as known so far.
TagNode WithoutLedger(TagNode node, const KnownTag& before);

// Everything a server must know to serve a cluster's tags.
struct KnownTags {
  std::string default_strategy{};          // as in ClusterMeta
  std::map<std::string, KnownTag> tags{};  // by name

  friend bool operator==(const KnownTags&, const KnownTags&) = default;
};

// The ledgers of a cluster's tags, as one server knows them. In a registry that loses no data, high
// + returned never falls. A reading in which the sum fell is ignored, unless its `high` is at or
// above the known one.
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

// The cached text of cluster `uuid`, and its parser. kCorrupt: it is another cluster's, or
// incomplete.
//
//     firn tags 2 <uuid> <default strategy, or ->
//     <encoded name> fine|unreadable|lost <the node's data>
//     end <number of tags>
std::string FormatKnownTags(const std::string& uuid, const KnownTags& tags);
Result<KnownTags> ParseKnownTags(const std::string& uuid, std::string_view text);

// Stores tag definitions beyond the life of the process. A start without the registry then serves
// the known tags, and nothing under a name whose definition it has never read.
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
