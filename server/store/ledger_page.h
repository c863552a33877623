#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "registry/cluster/records.h"
#include "server/store/ledger.h"

namespace firn {

// What a Ledger knows of one tag and has to do for it. For ledger.cc only.

// One verb on its way.
struct Ledger::Errand {
  enum class Kind { kBegin, kCover, kExtend, kStandIn, kGiveBack, kLook };

  Kind kind = Kind::kLook;
  std::string form{};   // of the tag, for whoever takes
  std::string store{};  // that has picked the range, or is away; empty: its ledger never stands in
  WallMs now{};         // when it stands in
  Range range{};
  Pick pick{};  // of kExtend and kStandIn
  RangeDone done{};
};

// What a verb comes to: the range, and the tag's node as it is to be written, if at all.
struct Ledger::Move {
  Range range{};
  std::optional<TagNode> node{};
};

// What a reading or a set says of a tag's node.
struct Ledger::Known {
  TagNode node;
  int64_t version = 0;       // V
  int64_t created_zxid = 0;  // Z
  int64_t root_version = 0;  // M
  Nonce era{};               // of the data that were read
  LedgerLimit limit{};       // of the cluster
  int64_t session = 0;
};

// What is known of one tag's node, and what is to be done with it.
struct Ledger::Page {
  // What rule 6 compares a reading with.
  struct Seen {
    uint64_t sum = 0;  // high + returned, which never falls in one tree
    int64_t high = 0;  // the highest one: all that this server has used lies below
  };

  // Whether the node can be what this server saw before, or goes on above all of it, as one does
  // that was made anew after a loss.
  bool Fits(const TagNode& node) const {
    return !seen || node.ledger_sum() >= seen->sum || node.tag.NextBegin() >= seen->high;
  }
  // The same for a node as it was read: one that is no tag, or not there, does not fit.
  bool Fits(const std::optional<Node>& node) const {
    const auto read = node ? ReadTagNode(tag, node->data) : Result<TagNode>(NotFound("no node"));
    return read.ok() && Fits(read.value_or({}));
  }
  void See(const TagNode& node) {
    overtaken = true;
    seen = Seen{node.ledger_sum(), std::max(node.tag.high, seen ? seen->high : 0)};
  }

  std::string tag;
  std::deque<Errand> errands{};          // the first one is at work
  Task<> work{};                         // that does them
  bool overtaken = false;                // somebody has seen the node since it was asked for
  std::optional<Known> known{};          // empty: to be read
  std::optional<Seen> seen{};            // whoever read it
  std::optional<std::string> cluster{};  // uuid of the first reading
};

}  // namespace firn
