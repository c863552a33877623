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

// Returns the `size` numbers that follow the tag's ledger, fewer at the end of the tag's numbers.
// Call after CheckNumbersLeft.
inline Result<Range> RangeAfter(const TagDefinition& tag, int64_t size) {
  const int64_t begin = tag.NextBegin();
  if (size < 1) return Invalid("a range needs a size");
  return Range{begin, begin + std::min(size, NumbersEnd(tag) - begin)};
}

// State of one tag in a ledger, and its queued work. For ledger.cc only.

// One verb, in progress or queued.
struct Ledger::Errand {
  enum class Kind { kBegin, kCover, kExtend, kStandIn, kGiveBack, kRead };

  Kind kind = Kind::kRead;
  std::string form{};   // the tag's form in the request
  std::string store{};  // the store that picked the range or is unreachable; empty: neither
  WallMs now{};         // of kStandIn
  Range range{};
  Pick pick{};  // of kExtend and kStandIn
  RangeDone done{};
  bool reread = false;  // discard the cached node first
};

// Result of a verb: the range, and the tag's new node if one has to be written.
struct Ledger::Move {
  Range range{};
  std::optional<TagNode> node{};
};

// A tag's node, as last read or set.
struct Ledger::Known {
  TagNode node;
  int64_t version = 0;       // V
  int64_t created_zxid = 0;  // Z
  int64_t root_version = 0;  // M
  Nonce era{};               // the era of the reading
  LedgerLimit limit{};       // of the cluster
  int64_t session = 0;
};

// The ledger's state of one tag: its node, and its errands.
struct Ledger::Page {
  // The state with which rule 6 compares readings.
  struct Seen {
    uint64_t sum = 0;  // high + returned, which never falls in one tree
    int64_t high = 0;  // the highest `high`; this server has only used numbers below it
  };

  // Returns whether the node can be a later state of the seen one, or is above all numbers seen,
  // for example because it was re-created after a loss.
  bool Fits(const TagNode& node) const {
    return !seen || node.ledger_sum() >= seen->sum || node.tag.NextBegin() >= seen->high;
  }
  // Like Fits for a raw node: an invalid or missing node does not fit.
  bool Fits(const std::optional<Node>& node) const {
    const auto read = node ? ReadTagNode(tag, node->data) : Result<TagNode>(NotFound("no node"));
    return read.ok() && Fits(read.value_or({}));
  }
  void See(const TagNode& node) {
    overtaken = true;
    seen = Seen{node.ledger_sum(), std::max(node.tag.high, seen ? seen->high : 0)};
  }

  std::string tag;
  std::deque<Errand> errands{};  // the first one is in progress
  Task<> work{};                 // runs the errands
  bool overtaken = false;        // the node was seen in a newer state after the last read was sent
  std::optional<Known> known{};  // empty: must be read
  std::optional<Seen> seen{};    // from any reading or set
  std::optional<std::string> cluster{};  // uuid of the first reading
};

// Returns whether the tag's current definition permits the ledger to stand in for that store.
inline bool StandsInFor(const TagDefinition& tag, const std::string& store) {
  return tag.when_store_is_away == StoreAway::kLedger && tag.store == store;
}

}  // namespace firn
