#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
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

// Makes an issuer serve the tags that the registry defines, and follow their changes.
//
//  1. Until the definitions have been read every tag is refused with NOT_READY. A start without
//     the registry uses the definitions that were cached at the last reading. The cache is read
//     at the start, on its own thread; nothing is taken from the registry before that has ended.
//  2. If there is a cache, a definition is stored there before it is served; a refusal applies at
//     once. If storing fails, the tag is served anyway, and stored when that is possible again.
//  3. A tag that this program cannot serve, one whose node is unreadable, and a disabled one are
//     refused with the reason. After an edit of only the sizes of ranges or `buffer` that it cannot
//     serve, a tag keeps its earlier definition (ServedTags).
//  4. While the registry is unreachable, tags are served as before.
//  5. A tag whose node has disappeared, or is cached but missing, is lost: it is refused, with an
//     alarm. Only a defect or a loss of data removes nodes, and another server may issue its
//     numbers from now on. A tag that returns in another form (FormOf) although ids of the old
//     form may have been issued, which no edit can do, is lost, too.
//     A deleted tag of which nothing was ever issued counts as undefined.
//     A definition counts as new, changed or lost only after the root node and the tag's own node
//     have been read after one sync, and the root node is whole (KnownRoot).
//  5a. Under any other root node nothing is taken from the tree: known tags without a ledger are
//     served as before, since the claim covers their ids; undefined names are refused. So are tags
//     with a ledger, unless the cluster is merely frozen: then their ledgers do not move.
//  6. Undefined names are served by the cluster's default strategy, or are unknown; before a name
//     is reported as unknown its node is read once, after the call came (NameLookups).
//
// Owned by the control thread, except its seeker.
class TagFollower {
 public:
  using Ledgers = std::map<std::string, int64_t>;

  // How long a start waits for the registry before it goes by what was kept.
  static constexpr Milliseconds kPatience{300};
  static constexpr Milliseconds kPatienceWithSession{5'000};
  // After this a memory that could not keep the tags is asked again.
  static constexpr Milliseconds kKeepAgain{60'000};
  // Ledgers that have moved are written to the memory this often. What a crash loses of them is a
  // limit of what a later start notices.
  static constexpr Milliseconds kKeepLedgersEvery{60'000};
  static constexpr Milliseconds kReadAgain{1'000};

  // All references must outlive it. `uuid`: of the cluster, when it is known already; `memory`:
  // null when nothing is kept.
  TagFollower(Coordinator& coordinator, Entropy& entropy, const Catalogue& catalogue,
              Issuer& issuer, std::string uuid = {}, TagMemory* memory = nullptr);

  // `served` is called for each definition that begins to be served. Set before the first Tick.
  void OnServed(std::function<void(const TagDefinition&)> served) {
    served_.OnServed(std::move(served));
  }

  // `saw` is called for each reading of a tag's node, also for tags that are not served, and for
  // nodes that have disappeared. Set before the first Tick.
  using Saw = std::function<void(const std::string& tag, const std::optional<TagNode>& node)>;
  void OnSeen(Saw saw) { on_seen_ = std::move(saw); }

  // `remembered` is called with each tag's node from the cache, including its ledger, before the
  // tag is served. A registry with a lower ledger was put back while this server was stopped. Set
  // before the first Tick.
  void OnRemembered(std::function<void(const std::string& tag, const TagNode& node)> remembered) {
    on_remembered_ = std::move(remembered);
  }

  // `deleted` is called for each tag that is undefined from now on. Set before the first Tick.
  void OnDeleted(std::function<void(const std::string& tag)> deleted) {
    on_deleted_ = std::move(deleted);
  }

  // Does what is due. Call every 50 ms or so.
  void Tick(BootMs now);

  // What serves the tag here is closed for good: its node is read again, and another one made.
  void Redefined(const std::string& tag);

  // For the issuer: who looks for names that are not known here.
  TagSeeker& seeker() { return lookups_; }

  // The highest ledger seen of each tag: `firn restore` raises ledgers above it. A reading that
  // changes it creates a new object, so a holder may use its object in any thread.
  std::shared_ptr<const Ledgers> highest() const { return highest_; }

  // The tags that are lost (rule 5), as they were known last. Another object after each change.
  using Definitions = std::map<std::string, TagDefinition>;
  std::shared_ptr<const Definitions> lost() const { return lost_; }

  // Ledgers that this server has moved itself, before the registry has told of it.
  void RaiseHighest(const Ledgers& higher);

  // A tag's ledger as this server has moved it, before the watch shows it.
  void NoteLedger(const std::string& name, int64_t high, int64_t returned);

  // Writes the ledgers to the memory at a clean stop. Call it repeatedly until it returns true:
  // they are durable, or the memory failed once more.
  bool KeptLedgers();

  // Whether the cluster is, as its root node was read last.
  bool frozen() const { return root_.meta() && root_.meta()->frozen; }

  // Why the registry's nodes do not count (rule 5a); empty while they do.
  const std::string& root_trouble() const { return root_.why_not(); }

  // The tags that are refused here, and why. Another object after each change.
  std::shared_ptr<const RefusedTags> refused() { return served_.refused(); }
  std::shared_ptr<const OutdatedTags> outdated() const { return served_.outdated(); }
  // Whether a tag that needs no claim gave ids a second ago.
  bool gives_numbers() const { return served_.gives_numbers(); }

  // True once it is known what to serve: read, or kept.
  bool whole() const { return whole_; }

 private:
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
    bool news = false;                // names without a known definition
    std::vector<std::string> tags{};  // that are known otherwise
  };
  Doubts FindDoubts();
  bool IsConfirmed(const std::string& name, const std::optional<Node>& node);
  KnownTags ReadAll();
  KnownTag ReadOne(const std::string& name, const Result<TagNode>& tag, Ledgers& highest);
  std::optional<KnownTag> Judge(const std::string& name, const Result<TagNode>& tag) const;
  const Result<TagNode>& Parse(const std::string& name, const std::string& data);
  bool IsDeleted(const std::string& name, const Result<TagNode>& tag) const;
  void Forget(const std::string& name);
  void NoteLost(KnownTags& read);
  void LogLost();
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
  // Nodes by name, as text and as what it says: of thousands, mostly one has moved.
  std::map<std::string, std::pair<std::string, Result<TagNode>>> parsed_;
  KnownTags known_;                  // as read last, lost ones included
  std::optional<KnownTags> kept_{};  // as in the memory, or as it could not keep them
  std::optional<BootMs> unkept_{};   // since when it could not
  KnownLedgers ledgers_{};
  // When ledgers that the memory does not hold yet are written.
  std::optional<BootMs> ledgers_due_{};
  bool loading_ = false;  // from there, once
  bool loaded_ = false;   // that has ended
  bool keeping_ = false;
  bool kept_at_stop_ = false;  // what could not be kept before was tried once more
  bool whole_ = false;
  std::set<std::string> deleted_;  // that are forgotten
  ServedTags served_;
  std::shared_ptr<const Ledgers> highest_ = std::make_shared<Ledgers>();
  std::shared_ptr<const Definitions> lost_ = std::make_shared<Definitions>();
  std::optional<BootMs> began_{};
  BootMs now_;
  MetaWatch meta_;
  FolderWatch watch_;
  NameLookups lookups_;
  bool look_wanted_ = false;
  BootMs look_at_;  // not before
  BootMs look_for_numbers_at_;
  AsyncRegistry async_registry_;
  Task<> look_;  // of rule 5
  const CallbackGuard guard_;
};

}  // namespace firn
