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

// Returns the `size` numbers that follow the tag's ledger, fewer at the end of its numbers. Call
// after CheckNumbersLeft.
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
  std::string store{};  // picked the range, or is unreachable; empty: no stand-in
  WallMs now{};         // of kStandIn
  Range range{};
  Pick pick{};  // of kExtend and kStandIn
  RangeDone done{};
  bool reread = false;  // discard the cached node first
};

// Result of a verb: the range, and the tag's node as it must be written, if at all.
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
  Nonce era{};               // of the data that were read
  LedgerLimit limit{};       // of the cluster
  int64_t session = 0;
};

// What the ledger knows of one tag's node, and the errands for it.
struct Ledger::Page {
  // The state that rule 6 compares readings with.
  struct Seen {
    uint64_t sum = 0;  // high + returned, which never falls in one tree
    int64_t high = 0;  // the highest `high`: this server has used only numbers below
  };

  // Whether the node can be a later state of the seen one, or lies above it, like a node that was
  // re-created after a loss.
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
  std::deque<Errand> errands{};          // the first one is in progress
  Task<> work{};                         // runs the errands
  bool overtaken = false;                // the node was seen after the last read was sent
  std::optional<Known> known{};          // empty: must be read
  std::optional<Seen> seen{};            // by any reading or set
  std::optional<std::string> cluster{};  // uuid of the first reading
};

// Whether the tag's current definition lets the ledger replace that store.
inline bool StandsInFor(const TagDefinition& tag, const std::string& store) {
  return tag.when_store_is_away == StoreAway::kLedger && tag.store == store;
}

}  // namespace firn
