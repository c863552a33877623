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
#include "registry/seam/coordinator.h"
#include "registry/seam/talk.h"
#include "server/issue/range.h"

namespace firn {

// What the ledger's owner is told. Called on the control thread.
struct LedgerHooks {
  // The registry's data went back in time as far as this tag is concerned, or its node has gone:
  // ranges in memory may be given to others from now on. Stop issuing them before this returns.
  std::function<void(const std::string& tag, const std::string& why)> stop{};
  // The tag has another form than whoever asks for a range was made for (rule 8): it is to be read
  // anew. What issues it here must have been closed when this returns.
  std::function<void(const std::string& tag)> redefined{};
};

// Where a tag's ledger is, and whose it is.
struct LedgerPlace {
  std::string cluster;  // by uuid
  int64_t begin = 0;    // where the next range has to begin
  int64_t picked = 0;   // the end of what the tag's store has picked; above it the ledger did
};

// The ledgers of a cluster's segment tags, as one server writes them. The ledger is `high` in a
// tag's node: numbers below it may have been used.
//
//  1. A range is used only after a set of the node has moved `high` from at most its begin to its
//     end. The set is one multi: check(root at M) + set(node at V), where M and V belong to one
//     reading after a sync, or V to the set before. So used ranges begin at or above everything
//     that was used before, whatever a store does.
//  2. It counts only when it is answered ok with V's successor (node_version.h: versions wrap,
//     which is no other creation) and the creation that was read.
//  3. Unknown outcome: the range is thrown away. It is never looked up whether the set came through
//     after all: `high` may then have been moved for nothing, which is a waste.
//  4. Somebody else was first: read again; `high` still at or below the begin: set again; above it:
//     the range is thrown away.
//  5. Another session or another M: everything remembered is forgotten and read again. In another
//     session the same numbers may stand for another tree.
//  6. `high` falls only when its last taker gives an unused tail back, which counts it in
//     `returned`: high + returned never falls. A reading in which it has fallen, unless
//     it goes on above everything seen before, or without the node, or of another cluster, stops
//     the tag and freezes the cluster, in the era of that reading only.
//  7. Nothing is written while the cluster is frozen or the tag disabled or deleted.
//  8. Who takes a range says for which form of the tag (FormOf). The node must have it, in the very
//     version that is set; otherwise nothing is taken. Since no edit changes the form of a tag
//     whose ledger has moved, all numbers of a tag go out in one form. Giving back compares
//     nothing.
//  9. In the place of a store the ledger picks only when the node allows it in the very version
//     that is set, and says that this store has given a range of a counter that is this cluster's
//     alone: nobody else takes from it what the ledger gives away meanwhile. Covering such a range
//     is what says so.
// 10. In a cluster that serves undefined tags a range ends below the first id that may have been
//     issued under the tag's name while it was undefined (LimitOf), whoever picks it.
//
// Owned by the control thread: every verb is called there, and every answer is given there, in Tick
// or in the verb itself when nothing has to be asked. Each is given exactly once; destroyed, it
// drops those that are missing. Verbs of one tag are done one after another, at most kQueueMax.
class Ledger {
 public:
  static constexpr int kTriesMax = 200;  // at losing to others
  static constexpr size_t kQueueMax = 64;

  using StatusDone = std::function<void(Status)>;
  using BeginDone = std::function<void(Result<int64_t>)>;
  using PlaceDone = std::function<void(Result<LedgerPlace>)>;
  using RangeDone = std::function<void(Result<Range>)>;

  // Codes of all: kUnavailable: nothing was written, try later; kUnknown: a range that was asked
  // for is lost; kConflict: somebody else's numbers lie above the range's begin, or the tail is not
  // the last; kNotFound, kCorrupt, kDenied, kInvalid: the tag cannot go on here. `tag` is what the
  // asker was made for: of it name and form count.
  Ledger(Coordinator& coordinator, LedgerHooks hooks);
  ~Ledger();

  // Handles what has been answered. Call after each round of answers.
  void Tick(BootMs now);

  // The number at or above which the tag's next range must begin, as last seen: what a store is
  // asked to go on from. Stale at worst, which Cover finds out.
  void Begin(const TagDefinition& tag, BeginDone done);

  // The same, with the cluster that it was read in: for numbers that are kept outside of it. `tag`
  // says by its store whose ranges are meant.
  void Where(const TagDefinition& tag, PlaceDone done);

  // Rule 1 for a range that a store has picked. Ok: it may be used. A tag whose ledger may stand in
  // for its store must have had it from a counter that is this cluster's alone.
  void Cover(const TagDefinition& tag, Range range, StatusDone done);

  // Lets the ledger itself pick: the range that follows `high`, of `size` numbers, fewer at the end
  // of 63 bits; kExhausted beyond. Covered when it is answered.
  void Extend(const TagDefinition& tag, int64_t size, RangeDone done);

  // The same in the place of the tag's store, which is away: rule 9; kUnavailable when it does not
  // allow it. `now` is kept as the time since when.
  void ExtendForStore(const TagDefinition& tag, int64_t size, WallMs now, RangeDone done);
  // The same for a tag whose ranges somebody else picks, by the node's definition in the very
  // version that is set. What begins below the ledger is refused.
  using Pick = std::function<Result<Range>(const TagDefinition& now)>;
  void Extend(const TagDefinition& tag, Pick pick, RangeDone done);

  // Moves `high` from the tail's end back to its begin. Whoever calls it must have taken the tail
  // from this ledger and closed what issued from it.
  void GiveBack(const std::string& tag, Range tail, StatusDone done);

  // A reading of the tag's node by somebody else, perhaps an old one; nothing: the node was not
  // there. What looks like rule 6 is looked at again after a sync before anything is done about it.
  void Saw(const std::string& tag, const std::optional<TagNode>& node);

  // The ledgers that were set or seen here since this was asked last: all ranges that this server
  // has used lie below them, from the very moment at which they may be used.
  std::map<std::string, int64_t> TakeNews() { return std::exchange(news_, {}); }

 private:
  struct Errand;
  struct Known;
  struct Move;
  struct Page;

  Page& PageOf(const std::string& tag);
  void See(Page& page, const TagNode& node);
  void Queue(const std::string& tag, Errand errand);
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
  std::map<std::string, int64_t> news_;                 // as TakeNews tells them
  // What hooks and askers are to be told, in order: they are called when no task runs.
  std::deque<std::function<void()>> calls_;
  Nonce freezing_;  // the era that the freeze is about
  Talk talk_;
  Task<> freeze_;
};

}  // namespace firn
