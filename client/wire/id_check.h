#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "client/wire/ask.h"
#include "common/id/layout.h"
#include "common/time/micros.h"

namespace firn::client {

// Which ids a server can have given, by what it said of itself when the connection to it began.
//
//  1. None is 0, and none is below 0 unless the layout gives its highest bit to the version.
//  2. An id of a tag that is made of time, and shown as it was issued, can be read by the layout,
//     and its time is within kSlack of the server's clock.
//  3. What a segment or an obfuscated tag gives is any number that rule 1 allows, and so is what a
//     tag gives of which the server said nothing.
//
// A value, thread-compatible.
class IdCheck {
 public:
  // Beyond every clock that anybody would issue under, and still next to nothing of a layout's
  // time: the ids of another layout, or of none, are hardly ever so near.
  static constexpr Milliseconds kSlack{24 * 3'600'000};

  IdCheck() = default;
  // The server said `facts` at the moment `said`.
  IdCheck(const ServerFacts& facts, Micros said);

  // A sentence when the server cannot have given these ids by the moment `now`.
  std::optional<std::string> FaultOf(const Ask& ask, const Reply& reply, Micros now) const;

 private:
  bool CanBe(int64_t id) const { return signed_ids_ ? id != 0 : id > 0; }
  std::optional<std::string> FaultOf(int64_t id, bool timed, Micros now) const;

  std::optional<Layout> layout_{};  // empty: not understood
  bool signed_ids_ = false;
  std::set<std::string, std::less<>> timed_{};  // the tags of rule 2
  WallMs wall_{0};                              // the server's clock at said_
  Micros said_{0};
};

}  // namespace firn::client
