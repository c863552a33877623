#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "common/tag/numbers_left.h"
#include "registry/cluster/records.h"
#include "server/store/ledger.h"

namespace firn {

// The `size` numbers that follow the tag's ledger, fewer at the end of its numbers, which
// CheckNumbersLeft has not found.
inline Result<Range> RangeAfter(const TagDefinition& tag, int64_t size) {
  const int64_t begin = tag.NextBegin();
  if (size < 1) return Invalid("a range needs a size");
  return Range{begin, begin + std::min(size, NumbersEnd(tag) - begin)};
}

// State of one tag in a ledger, and the work that is queued for it. For ledger.cc only.

// One verb, in progress or queued.
struct Ledger::Errand {
  enum class Kind { kBegin, kCover, kExtend, kStandIn, kGiveBack, kRead };

  Kind kind = Kind::kRead;
  std::string form{};   // of the tag that a range is taken for
  std::string store{};  // that picked the range, or is away; empty: the ledger never stands in
  WallMs now{};         // of kStandIn
  Range range{};
  Pick pick{};  // of kExtend and kStandIn
  RangeDone done{};
  bool reread = false;  // whatever is remembered
};

// Result of a verb: the range, and the tag's node as it must be written, if at all.
struct Ledger::Move {
  Range range{};
  std::optional<TagNode> node{};
};

// A tag's node, as it was read or set.
struct Ledger::Known {
  TagNode node;
  int64_t version = 0;       // V
  int64_t created_zxid = 0;  // Z
  int64_t root_version = 0;  // M
  Nonce era{};               // of the data that were read
  LedgerLimit limit{};       // of the cluster
  int64_t session = 0;
};

// What the ledger knows of one tag's node, and the errands for it.
struct Ledger::Page {
  // What rule 6 compares a reading with.
  struct Seen {
    uint64_t sum = 0;  // high + returned, which never falls in one tree
    int64_t high = 0;  // the highest one: all that this server has used lies below
  };

  // Whether the node can be a later state of the one that this server saw, or lies above all of it,
  // as a node that was re-created after a loss does.
  bool Fits(const TagNode& node) const {
    return !seen || node.ledger_sum() >= seen->sum || node.tag.NextBegin() >= seen->high;
  }
  // The same for a node as it was read: an invalid or missing node does not fit.
  bool Fits(const std::optional<Node>& node) const {
    const auto read = node ? ReadTagNode(tag, node->data) : Result<TagNode>(NotFound("no node"));
    return read.ok() && Fits(read.value_or({}));
  }
  void See(const TagNode& node) {
    overtaken = true;
    seen = Seen{node.ledger_sum(), std::max(node.tag.high, seen ? seen->high : 0)};
  }

  std::string tag;
  std::deque<Errand> errands{};          // the first one is in progress
  Task<> work{};                         // runs the errands
  bool overtaken = false;                // the node was seen since the last read was sent
  std::optional<Known> known{};          // empty: must be read
  std::optional<Seen> seen{};            // by any reading or set
  std::optional<std::string> cluster{};  // uuid of the first reading
};

// Whether the tag's current definition lets its ledger stand in for that store.
inline bool StandsInFor(const TagDefinition& tag, const std::string& store) {
  return tag.when_store_is_away == StoreAway::kLedger && tag.store == store;
}

}  // namespace firn
