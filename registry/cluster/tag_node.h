#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/tag/tag_definition.h"

namespace firn {

// A tag as the registry keeps it: one JSON object in the node <cluster>/tags/<encoded name>, so
// that zkCli.sh shows it as readable text:
//
//     {"strategy":"segment","disabled":false,"store":"registry","step":1000,...,"high":2001}
//
// Keys are those of common/tag/tag_fields.h; numbers are integers, `plugins` is a list, options of
// plugins are texts under "<plugin>.<key>". `high` is always there: a ledger that is missing is not
// a ledger of 0.
//
// `returned` counts the numbers that were given back unused by moving `high` down, so that
// high + returned never falls: a reading in which it has fallen is one of data that went back.
//
// `stand_in` is there once the ledger may pick ranges in the place of the tag's store.
//
// `deleted` is there when the tag was deleted before a number of it was given: there is no such
// tag, but its node stays, since one that is gone means that data were lost. It is disabled as
// well, for versions that do not know the word.
//
// What a later version added is kept: a node is rewritten with its unknown members as they were.

inline constexpr std::string_view kTagsPath = "/tags";
std::string TagPath(std::string_view name);

inline constexpr size_t kTagNodeBytesMax = 64 << 10;

// What lets a tag's ledger pick ranges by itself while the tag's store is away
// (when_store_is_away = ledger), and since when it does. Written by ledger writes; gone after an
// edit of the tag's store or of that setting.
struct StandIn {
  std::string store{};  // that has said with a range that its counter is this cluster's alone
  int64_t picked = 0;   // the end of the last range that it has picked, and that counts
  WallMs since{};       // the first range after it that the ledger has picked; 0: there is none

  friend bool operator==(const StandIn&, const StandIn&) = default;
};

struct TagNode {
  TagDefinition tag;
  std::string others{};  // the members that this version does not know, a JSON object; empty: none
  int64_t returned = 0;  // numbers given back; of ledger writes only
  StandIn stand_in{};
  bool deleted = false;  // never where the ledger has moved: numbers are out

  // What never falls in a registry that loses nothing.
  uint64_t ledger_sum() const {
    return static_cast<uint64_t>(tag.high) + static_cast<uint64_t>(returned);
  }

  friend bool operator==(const TagNode&, const TagNode&) = default;
};

// The tag called `name` from its node's data. Whatever is not a tag that CheckTag accepts is
// refused with kCorrupt and every fault at once; nothing is guessed. Whoever asks knows which tag
// it is, so the message does not name it.
Result<TagNode> ReadTagNode(std::string_view name, std::string_view data);

// The data of a tag's node. Refuses with kInvalid a tag that ReadTagNode would refuse.
Result<std::string> WriteTagNode(const TagNode& node);

}  // namespace firn
