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
#include "registry/cluster/records.h"
#include "registry/cluster/tag_node.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/coordinator.h"
#include "server/issue/range.h"

namespace firn {

// Callbacks to the ledger's owner, on the control thread.
struct LedgerHooks {
  // Called when the registry lost data of this tag: its ledger fell, or its node is missing. Other
  // servers may then get the ranges in memory, so this must stop issuing them before it returns.
  std::function<void(const std::string& tag, const std::string& why)> stop{};
  // Called when a range was requested for another form than the tag's (rule 8). Must close the
  // tag's strategy before it returns, and cause a new reading of the tag.
  std::function<void(const std::string& tag)> redefined{};
};

// Position of a tag's ledger, and the ledger's cluster.
struct LedgerPlace {
  std::string cluster;  // uuid
  int64_t begin = 0;    // least begin of the next range
  int64_t picked = 0;   // end of the ranges that the store picked; the ledger picked the later ones
};

// Reads and writes the ledgers of a cluster's segment tags for one server. A ledger is the number
// `high` in a tag's node: numbers below it may have been used.
//
//  1. A range is used only after a set of the node has moved `high` from at most its begin to its
//     end. The set is one multi: check(root at M) + set(node at V), where M and V come from one
//     reading after a sync, or V from the previous set. So a used range begins at or above all
//     numbers used before, even if a store returns wrong ranges.
//  2. The set counts only if its answer is ok, its version is the successor of V (node_version.h: a
//     version that wraps is not a new creation), and its creation is the one that was read.
//  3. If the outcome of the set is unknown, the range is discarded. There is no later check whether
//     the set succeeded; if it did, numbers are wasted.
//  4. If another server wrote first, root and node are read again. If `high` is still at or below
//     the range's begin, the set is retried; otherwise the range is discarded.
//  5. In a new session, all cached state is discarded and read again, because the same version
//     numbers may belong to another tree. The same applies if M has changed.
//  6. `high` falls only when the server that took the last range gives its unused tail back. This
//     adds the tail to `returned`, so high + returned never falls. Three readings prove a loss: a
//     lower sum with a `high` that is not above all numbers seen before, a missing node, and
//     another cluster. Then the tag is stopped, and the cluster is frozen if it still has the era
//     of that reading.
//  7. Nothing is written while the cluster is frozen. No range is taken while the tag is disabled
//     or deleted.
//  8. A request for a range contains the form of the tag (FormOf). The node must have that form in
//     the version on which the set is based; otherwise the request is refused. Once the ledger has
//     moved, an edit can change the form only by giving the tag an owner (CheckEdit). So no number
//     is issued in two forms, and a server that has not read the edit gets no more numbers. Giving
//     back does not compare forms.
//  9. The ledger stands in for a store only if the node, in the version on which the set is based,
//     permits that. The node must also record that this store has returned a range of a counter
//     that only this cluster uses, so that no other cluster gets the numbers that the ledger picks.
//     Covering such a range writes the record.
// 10. In a cluster that serves undefined tags, every range ends below the first id that may have
//     been issued under the tag's name while it was undefined (LimitOf).
// 11. No range begins at or above the end of the tag's numbers (NumbersEnd): kExhausted.
//
// Owned by the control thread: every verb is called there, and its answer is delivered there, in
// Tick, or in the verb itself if nothing has to be read. Each verb is answered exactly once; the
// destructor drops outstanding answers. Verbs of one tag run one after another; at most kQueueMax
// of them wait.
class Ledger {
 public:
  static constexpr int kTriesMax = 200;  // maximum attempts while other servers write first
  static constexpr size_t kQueueMax = 64;

  using StatusDone = std::function<void(Status)>;
  using BeginDone = std::function<void(Result<int64_t>)>;
  using PlaceDone = std::function<void(Result<LedgerPlace>)>;
  using RangeDone = std::function<void(Result<Range>)>;

  // Codes of all verbs: kUnavailable: nothing was written, retry later; kUnknown: the requested
  // range is lost; kConflict: other servers have used numbers above the range's begin, or the tail
  // is not the end of the last range; kNotFound, kCorrupt, kDenied, kInvalid: the tag cannot be
  // served here. `tag` is the caller's definition, from which the name and the form are used.
  Ledger(Coordinator& coordinator, LedgerHooks hooks);
  ~Ledger();

  // Processes the registry's answers. Call after each round of answers.
  void Tick(BootMs now);

  // Returns the least begin of the tag's next range, from which a store continues. The value may be
  // from an earlier reading and outdated; Cover detects that.
  void Begin(const TagDefinition& tag, BeginDone done);

  // Like Begin, with the cluster of the reading, for counters outside the registry. `picked`
  // concerns the ranges of store `tag.store`.
  void Where(const TagDefinition& tag, PlaceDone done);

  // Like Where, but always with a new reading, for counters outside the registry that may be
  // outdated.
  void WhereNow(const TagDefinition& tag, PlaceDone done);

  // Applies rule 1 to a range that a store has picked. If the answer is ok, the range may be used.
  // If the ledger may stand in for the store, the range must come from a counter that only this
  // cluster uses.
  void Cover(const TagDefinition& tag, Range range, StatusDone done);

  // Takes the `size` numbers that follow `high`, fewer at the end of the tag's numbers; kExhausted
  // beyond. The returned range is covered.
  void Extend(const TagDefinition& tag, int64_t size, RangeDone done);

  // Like Extend, but stands in for the tag's store, which is unreachable. kUnavailable if rule 9
  // forbids it. `now` is recorded as the beginning of the outage.
  void ExtendForStore(const TagDefinition& tag, int64_t size, WallMs now, RangeDone done);
  // Like Extend, but `pick` chooses the range, from the definition that was read from the node. A
  // range that begins below the ledger is refused.
  using Pick = std::function<Result<Range>(const TagDefinition& now)>;
  void Extend(const TagDefinition& tag, Pick pick, RangeDone done);

  // Moves `high` from the tail's end back to its begin. The caller must have taken the tail from
  // this ledger and must have stopped issuing from it.
  void GiveBack(const std::string& tag, Range tail, StatusDone done);

  // Records another component's reading of the tag's node, which may be outdated; nullopt: the node
  // was missing. If it suggests a loss (rule 6), the node is first re-read after a sync.
  void Saw(const std::string& tag, const std::optional<TagNode>& node);

  // Records the tag's node from before this server was stopped, so that rule 6 holds across the
  // stop.
  void Remember(const std::string& tag, const TagNode& node);

  // Returns the ledgers that were set or seen here since the last call. They include a range before
  // it is used, so all ranges that this server has used are below them.
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
  Status JudgeNode(Page& page, const ClusterMeta& meta, const Node& node);
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
  // Pending calls of hooks and of callers' functions, in order. They are made while no task runs.
  std::deque<std::function<void()>> calls_;
  Nonce freezing_;  // the era that freeze_ freezes
  AsyncRegistry async_registry_;
  Task<> freeze_;
};

}  // namespace firn
