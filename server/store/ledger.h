#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/tag_node.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/coordinator.h"
#include "server/issue/range.h"

namespace firn {

// Callbacks to the ledger's owner, on the control thread.
struct LedgerHooks {
  // The registry lost data of this tag (its ledger fell, or its node is missing): other servers may
  // get the ranges in memory. Must stop issuing them before it returns.
  std::function<void(const std::string& tag, const std::string& why)> stop{};
  // The tag's form differs from the one a range was requested for (rule 8). Must close the tag's
  // strategy before it returns, and have the tag re-read.
  std::function<void(const std::string& tag)> redefined{};
};

// Position of a tag's ledger, and the cluster that it belongs to.
struct LedgerPlace {
  std::string cluster;  // uuid
  int64_t begin = 0;    // the next range must begin here or above
  int64_t picked = 0;   // end of the store's own ranges; the ledger picked those above
};

// Reads and writes the ledgers of a cluster's segment tags for one server. A ledger is the number
// `high` in a tag's node: numbers below it may have been used.
//
//  1. A range is used only after a set of the node has moved `high` from at most its begin to its
//     end. The set is one multi: check(root at M) + set(node at V), where M and V come from one
//     reading after a sync, or V from the previous set. So used ranges begin at or above everything
//     that was used before, whatever a store does.
//  2. The set counts only if its answer is ok, has V's successor (node_version.h: a version that
//     wraps is not a new creation) and the creation that was read.
//  3. Unknown outcome: the range is discarded. Nothing checks later whether the set succeeded;
//     `high` may then have moved for nothing, which only wastes numbers.
//  4. Another server wrote first: read again. If `high` is still at or below the range's begin, set
//     again; if it is above, discard the range.
//  5. A new session, or another M: all cached state is discarded and read again. In a new session
//     the same version numbers may belong to another tree.
//  6. `high` falls only when its last taker gives an unused tail back, which counts it in
//     `returned`: high + returned never falls. Three readings show a loss: a lower sum that does
//     not lie above everything seen before, a missing node, and another cluster. Then the tag is
//     stopped, and the cluster is frozen if it still has the era of that reading.
//  7. While the cluster is frozen, nothing is written. While the tag is disabled or deleted, no
//     range is taken.
//  8. A taker names the form of the tag (FormOf) that it takes for. The node must have that form in
//     the version that is set; otherwise nothing is taken. No edit changes the form of a tag whose
//     ledger has moved, so all numbers of a tag are issued in one form. Giving back does not
//     compare forms.
//  9. The ledger replaces a store only if the node, in the version that is set, permits that and
//     records that this store has given a range of a counter that only this cluster uses. So no
//     other cluster takes from the store what the ledger picks. Covering such a range writes the
//     record.
// 10. In a cluster that serves undefined tags, every range ends below the first id that may have
//     been issued under the tag's name while it was undefined (LimitOf).
// 11. No range begins at or above the end of the tag's numbers (NumbersEnd): kExhausted.
//
// Owned by the control thread: every verb is called there, and its answer is delivered there, in
// Tick, or in the verb itself if nothing has to be read. Each verb is answered exactly once; the
// destructor drops outstanding answers. Verbs of one tag run in turn, at most kQueueMax of them.
class Ledger {
 public:
  static constexpr int kTriesMax = 200;  // attempts that lose to other servers
  static constexpr size_t kQueueMax = 64;

  using StatusDone = std::function<void(Status)>;
  using BeginDone = std::function<void(Result<int64_t>)>;
  using PlaceDone = std::function<void(Result<LedgerPlace>)>;
  using RangeDone = std::function<void(Result<Range>)>;

  // Codes of all verbs: kUnavailable: nothing was written, try later; kUnknown: the requested range
  // is lost; kConflict: numbers of other servers lie above the range's begin, or the tail is not
  // the last range; kNotFound, kCorrupt, kDenied, kInvalid: the tag cannot be served here. `tag` is
  // the caller's definition, of which the name and the form count.
  Ledger(Coordinator& coordinator, LedgerHooks hooks);
  ~Ledger();

  // Processes the registry's answers. Call after each round of them.
  void Tick(BootMs now);

  // Returns the number at or above which the tag's next range must begin, as last read: a store
  // continues from there. It may be stale, which Cover detects.
  void Begin(const TagDefinition& tag, BeginDone done);

  // Like Begin, with the cluster of the reading: for numbers kept outside of the registry. `picked`
  // concerns the ranges of store `tag.store`.
  void Where(const TagDefinition& tag, PlaceDone done);

  // Like Where with a new reading, for numbers outside of the registry that may be out of date.
  void WhereNow(const TagDefinition& tag, PlaceDone done);

  // Applies rule 1 to a range that a store has picked. Ok: it may be used. If the ledger may
  // replace the store, the range must come from a counter that only this cluster uses.
  void Cover(const TagDefinition& tag, Range range, StatusDone done);

  // Picks the range itself: the `size` numbers that follow `high`, fewer at the end of the tag's
  // numbers, kExhausted beyond. The returned range is covered.
  void Extend(const TagDefinition& tag, int64_t size, RangeDone done);

  // Like Extend, in place of the tag's store, which is unreachable (rule 9). kUnavailable if rule 9
  // forbids it. `now` is recorded as the beginning of the outage.
  void ExtendForStore(const TagDefinition& tag, int64_t size, WallMs now, RangeDone done);
  // Like Extend, but `pick` chooses the range, from the node's definition in the version that is
  // set. A range that begins below the ledger is refused.
  using Pick = std::function<Result<Range>(const TagDefinition& now)>;
  void Extend(const TagDefinition& tag, Pick pick, RangeDone done);

  // Moves `high` from the tail's end back to its begin. The caller must have taken the tail from
  // this ledger and closed what issued from it.
  void GiveBack(const std::string& tag, Range tail, StatusDone done);

  // Records another component's reading of the tag's node, perhaps an old one; nullopt: the node
  // was missing. If it suggests a loss (rule 6), the node is re-read after a sync first.
  void Saw(const std::string& tag, const std::optional<TagNode>& node);

  // Records the tag's node as this server knew it before it was stopped, so that rule 6 holds
  // across the stop. TakeNews returns its `high` only once the registry shows less.
  void Remember(const std::string& tag, const TagNode& node);

  // Returns the ledgers that were set or seen here since the last call: all ranges that this server
  // has used lie below them, from the moment at which they may be used.
  std::map<std::string, int64_t> TakeNews() { return std::exchange(news_, {}); }

  // Returns high and returned of each node that was read or set here since the last call.
  using Ledgers = std::map<std::string, std::pair<int64_t, int64_t>>;
  Ledgers TakeLedgers() { return std::exchange(ledgers_, {}); }

 private:
  struct Errand;
  struct Known;
  struct Move;
  struct Page;

  Page& PageOf(const std::string& tag);
  void See(Page& page, const TagNode& node);
  void Queue(const std::string& tag, Errand errand);
  Errand WhereErrand(const TagDefinition& tag, PlaceDone done);
  Task<> Work(Page* page);
  Task<Result<Range>> Do(Page* page, const Errand* errand);
  Task<Status> Read(Page* page);
  Status Judge(Page& page, const Nodes& nodes);
  Status JudgeNode(Page& page, const Nonce& era, const Node& node);
  Result<Move> Decide(const Page& page, const Errand& errand);
  Status Refusal(const Page& page, const std::string& form);
  static Status MayStandIn(const TagNode& node, const std::string& store);
  Result<Range> Moved(Page& page, Known sent, const NodeStat& stat, Range range);
  Status Lost(Page& page, const std::optional<Nonce>& era, const std::string& why);
  void BeginFreeze(const Nonce& era, std::string why);
  Task<> FreezeOut(Nonce era, std::string why);
  void TellNews();

  const LedgerHooks hooks_;
  std::map<std::string, std::unique_ptr<Page>> pages_;  // by tag
  std::map<std::string, int64_t> news_;                 // returned by TakeNews
  Ledgers ledgers_;                                     // returned by TakeLedgers
  // Pending calls of hooks and of callers' functions, in order; made when no task runs.
  std::deque<std::function<void()>> calls_;
  Nonce freezing_;  // the era that the freeze is for
  AsyncRegistry async_registry_;
  Task<> freeze_;
};

}  // namespace firn
