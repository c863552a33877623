#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "common/tag/tag_definition.h"
#include "common/time/entropy.h"
#include "registry/cluster/meta_watch.h"
#include "registry/cluster/tag_node.h"
#include "registry/dir/folder_watch.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/callback_guard.h"
#include "registry/seam/coordinator.h"
#include "server/issue/catalogue.h"
#include "server/issue/issuer.h"
#include "server/node/kept_tags.h"
#include "server/node/known_root.h"
#include "server/node/name_lookups.h"
#include "server/node/served_tags.h"

namespace firn {

// Reads the tags that the registry defines, follows their changes, and applies them to an issuer.
//
//  1. Until the definitions have been read, every tag is refused with NOT_READY. A start without
//     the registry uses the definitions that were cached at the last reading. The cache is read at
//     the start, on a separate thread. Definitions from the registry are not applied before this
//     has ended.
//  2. If there is a cache, a definition is stored there before it is served; a refusal takes effect
//     at once. If storing fails, the tag is served anyway, and storing is retried.
//  3. A tag is refused, with the reason, if this program cannot serve it, if its node is
//     unreadable, or if it is disabled. If this program cannot serve an edit that changes only the
//     sizes of ranges or `buffer`, the tag keeps its earlier definition (ServedTags).
//  4. While the registry is unreachable, tags are served as before.
//  5. A tag is lost if its node is missing although it was read or cached before. It is refused,
//     and an error is logged: only a defect or a loss of data removes nodes, and another server may
//     issue the tag's numbers from now on. A tag is also lost if it reappears in a form whose
//     ids look different (LookAlike), although ids of the old form may have been issued. A
//     deleted tag without issued ids counts as undefined. A definition counts as new, changed or
//     lost only after the root node and the tag's own node were read after one sync, and the root
//     node is whole (KnownRoot).
// 5a. If the root node is not whole, nothing is read from the tree. Known tags without a ledger are
//     served as before, since the claim covers their ids; undefined names are refused. Tags with a
//     ledger are refused, too, unless the cluster is merely frozen: then their ledgers do not
//     change.
//  6. An undefined name is served by the cluster's default strategy, created by its first use, or
//     refused as unknown. Before a name is refused as unknown, its node is read once after the
//     call's arrival (NameLookups).
//
// Owned by the control thread, except its seeker.
class TagFollower {
 public:
  using Ledgers = std::map<std::string, int64_t>;

  static_assert(kListedTagsMax == FolderWatch::kNodesMax);

  // How long a start waits for the registry before it uses cached definitions.
  static constexpr Milliseconds kPatience{300};
  static constexpr Milliseconds kPatienceWithSession{5'000};
  // Time between attempts to store tags after a failure.
  static constexpr Milliseconds kKeepAgain{60'000};
  // Interval at which changed ledgers are written to the memory. If a crash prevents that, and the
  // registry loses the same changes, a later start cannot detect the loss.
  static constexpr Milliseconds kKeepLedgersEvery{60'000};
  static constexpr Milliseconds kReadAgain{1'000};

  // All references must outlive this. `uuid`: the cluster's, if known; `memory`: null if there is
  // none.
  TagFollower(Coordinator& coordinator, Entropy& entropy, const Catalogue& catalogue,
              Issuer& issuer, std::string uuid = {}, TagMemory* memory = nullptr);

  // `served` is called for each definition that begins to be served. Set before the first Tick.
  void OnServed(std::function<void(const TagDefinition&)> served) {
    served_.OnServed(std::move(served));
  }

  // `saw` is called for each reading of a tag's node, also for tags that are not served, and with
  // nullopt for nodes that are missing. Set before the first Tick.
  using Saw = std::function<void(const std::string& tag, const std::optional<TagNode>& node)>;
  void OnSeen(Saw saw) { on_seen_ = std::move(saw); }

  // `remembered` is called with each cached tag node, including its ledger, before the tag is
  // served. If the registry's ledger is lower, it was restored to an older state while this server
  // was stopped. Set before the first Tick.
  void OnRemembered(std::function<void(const std::string& tag, const TagNode& node)> remembered) {
    on_remembered_ = std::move(remembered);
  }

  // `deleted` is called for each deleted tag; the tag is undefined afterwards. Set before the first
  // Tick.
  void OnDeleted(std::function<void(const std::string& tag)> deleted) {
    on_deleted_ = std::move(deleted);
  }

  // Does the work that is due. Call about every 50 ms.
  void Tick(BootMs now);

  // Called when the tag's strategy was abandoned. Causes the node to be re-read and a new strategy
  // to be created.
  void Redefined(const std::string& tag);

  // Returns the object that looks up names unknown to the issuer.
  TagSeeker& seeker() { return lookups_; }

  // Returns the highest ledger of each tag that was seen or cached, also if the registry has less
  // now; `firn restore` raises ledgers above it. A change creates a new object, so any thread may
  // keep using the returned one.
  std::shared_ptr<const Ledgers> highest() const { return highest_; }

  // Returns the last known definitions of tags that are lost (rule 5) or refused. A change creates
  // a new object.
  using Definitions = std::map<std::string, TagDefinition>;
  std::shared_ptr<const Definitions> unserved() const { return unserved_; }

  // Records ledgers that this server has moved itself, before the watch reports them.
  void RaiseHighest(const Ledgers& higher);

  // Records a ledger for the memory, before the watch reports it.
  void NoteLedger(const std::string& name, int64_t high, int64_t returned);

  // Writes the ledgers to the memory at a clean stop. Call repeatedly until it returns true: then
  // they are durable, or a last attempt has failed.
  bool KeptLedgers();

  // Returns whether the cluster is frozen, by the last reading of its root node.
  bool frozen() const { return root_.meta() && root_.meta()->frozen; }

  // Why the registry's nodes are ignored (rule 5a); empty if they are used.
  const std::string& root_trouble() const { return root_.why_not(); }

  // Returns the tags that are refused here, with reasons. A change creates a new object.
  std::shared_ptr<const RefusedTags> refused() { return served_.refused(); }
  std::shared_ptr<const OutdatedTags> outdated() const { return served_.outdated(); }
  // Returns whether a tag that needs no claim could issue ids at the last check.
  bool gives_numbers() const { return served_.gives_numbers(); }

  // Returns whether the definitions have been read, from the registry or from the cache.
  bool whole() const { return whole_; }
  // Returns whether they are those of all tags.
  bool complete() const { return whole_ && known_.complete; }

 private:
  // Returns false for a known tag whose node is missing, because it is lost (rule 5).
  bool IsCreatable(const std::string& name) const;
  void RequestRead() { look_wanted_ = true; }
  Task<> ReadTags();
  void ReadLater() {
    look_wanted_ = true;
    look_at_ = now_ + kReadAgain;
  }
  void NoteRoot(const std::optional<Node>& node);
  void Distrust();
  void Follow();
  void TakeAll();
  struct Doubts {
    bool news = false;                // the watch has a name without a known definition
    std::vector<std::string> tags{};  // known tags whose nodes differ
  };
  Doubts FindDoubts();
  bool IsConfirmed(const std::string& name, const std::optional<Node>& node);
  KnownTags ReadAll();
  KnownTag ReadOne(const std::string& name, const Result<TagNode>& tag, Ledgers& seen);
  std::optional<KnownTag> Judge(const std::string& name, const Result<TagNode>& tag) const;
  const Result<TagNode>& Parse(const std::string& name, const std::string& data);
  bool IsDeleted(const std::string& name, const Result<TagNode>& tag) const;
  void Forget(const std::string& name);
  void NoteLost(KnownTags& read);
  void NoteUnserved();
  void LoadKept();
  void OnLoaded(Result<KnownTags> kept);
  void UseCachedTags();
  void KeepThenServe();
  void Keep();
  void OnKept(const KnownTags& tags, const Status& kept);
  void ServeAll(const std::string& default_strategy);
  void ServeTags();
  void RefuseByCache(const std::string& name, KnownTag::State state);

  Coordinator& coordinator_;
  TagMemory* const memory_;
  std::function<void(const std::string& tag)> on_deleted_;
  Saw on_seen_;
  std::function<void(const std::string& tag, const TagNode& node)> on_remembered_;

  KnownRoot root_;
  // Parsed nodes by name, with their text. A cache, because usually only one of thousands of tags
  // changes at a time.
  std::map<std::string, std::pair<std::string, Result<TagNode>>> parsed_;
  KnownTags known_;                  // as last read, including lost tags
  std::optional<KnownTags> kept_{};  // last passed to the memory, stored or not
  std::optional<BootMs> unkept_{};   // time of the last failure to store; empty: none
  KnownLedgers ledgers_{};
  // When ledgers that are not yet in the memory must be written.
  std::optional<BootMs> ledgers_due_{};
  bool loading_ = false;  // whether a read from the memory was started
  bool loaded_ = false;   // whether it has ended
  bool keeping_ = false;
  bool kept_at_stop_ = false;  // whether the last attempt after a failure was made
  bool whole_ = false;
  ServedTags served_;
  std::shared_ptr<const Ledgers> highest_ = std::make_shared<Ledgers>();
  std::shared_ptr<const Definitions> unserved_ = std::make_shared<Definitions>();
  std::optional<BootMs> began_{};
  BootMs now_;
  MetaWatch meta_;
  FolderWatch watch_;
  NameLookups lookups_;
  bool look_wanted_ = false;
  BootMs look_at_;  // earliest time of the next read
  BootMs look_for_numbers_at_;
  AsyncRegistry async_registry_;
  Task<> look_;  // runs ReadTags
  const CallbackGuard guard_;
};

}  // namespace firn
