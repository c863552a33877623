#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/tag/tag_definition.h"

namespace firn {

// A tag in the registry: one JSON object in the node <cluster>/tags/<encoded name>, which zkCli.sh
// shows as readable text:
//
//     {"strategy":"segment","disabled":false,"store":"registry","step":1000,...,"high":2001}
//
// The keys are those of common/tag/tag_fields.h. Numbers are integers, `plugins` is a list, options
// of plugins are strings under "<plugin>.<key>". `high` is always present: a missing ledger is not
// a ledger of 0.
//
// `returned` counts the unused numbers that were returned by lowering `high`, so that
// high + returned never falls. If it has fallen, the registry's data went back in time.
//
// `stand_in` is present once the ledger may pick ranges instead of the tag's store.
//
// `deleted` is present if the tag was deleted before any of its numbers was issued. The tag does
// not exist any more, but its node stays: a missing node would mean a loss of data. The node is
// also disabled, for versions that do not know this member.
//
// Members of later versions are kept when a node is rewritten.

inline constexpr std::string_view kTagsPath = "/tags";
std::string TagPath(std::string_view name);

inline constexpr size_t kTagNodeBytesMax = 64 << 10;

// The state of a ledger that may pick ranges while the tag's store is unreachable
// (when_store_is_away = ledger). Written by ledger writes, and removed by an edit of the tag's
// store or of that setting.
struct StandIn {
  std::string store{};  // has confirmed with a range that no other cluster uses its counter
  int64_t picked = 0;   // end of the last valid range from that store
  WallMs since{};       // when the ledger picked its first range after that; 0: it has not

  friend bool operator==(const StandIn&, const StandIn&) = default;
};

struct TagNode {
  TagDefinition tag;
  std::string others{};  // unknown members, as a JSON object; empty: none
  int64_t returned = 0;  // numbers returned; changed by ledger writes only
  StandIn stand_in{};
  bool deleted = false;  // never set once the ledger has moved, since numbers may be in use

  // Never falls unless the registry loses data.
  uint64_t ledger_sum() const {
    return static_cast<uint64_t>(tag.high) + static_cast<uint64_t>(returned);
  }

  friend bool operator==(const TagNode&, const TagNode&) = default;
};

// Parses the data of the node of tag `name`. kCorrupt, with all faults, unless CheckTag accepts the
// tag; nothing is guessed. The message does not name the tag, since the caller knows it.
Result<TagNode> ReadTagNode(std::string_view name, std::string_view data);

// Returns the data of a tag's node. kInvalid for a tag that ReadTagNode would refuse.
Result<std::string> WriteTagNode(const TagNode& node);

}  // namespace firn
