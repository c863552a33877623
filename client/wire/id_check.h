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

// Checks that a server can have issued ids, by its status at the start of the connection.
//
//  1. No id is 0. No id is negative, unless the layout's version field has the highest bit.
//  2. An id of a tag whose ids contain a time and are not obfuscated must be valid in the layout,
//     and its time must be within kSlack of the server's clock.
//  3. An id of any other tag (segment, obfuscated, or not in the server's status) may be any number
//     that rule 1 permits.
//
// A value, thread-compatible.
class IdCheck {
 public:
  // Larger than any error of a clock in use, but a small part of a layout's time: ids of another
  // layout, or numbers that are not ids, are very unlikely to be so near.
  static constexpr Milliseconds kSlack{24 * 3'600'000};

  IdCheck() = default;
  // Uses the server's status `facts` as of `said`.
  IdCheck(const ServerFacts& facts, Micros said);

  // Returns a sentence if the server cannot have issued these ids by `now`, otherwise "".
  std::optional<std::string> FaultOf(const Ask& ask, const Reply& reply, Micros now) const;

  // Returns the server's layout; null if it is unknown.
  const Layout* layout() const { return layout_ ? &*layout_ : nullptr; }

 private:
  bool CanBe(int64_t id) const { return signed_ids_ ? id != 0 : id > 0; }
  std::optional<std::string> FaultOf(int64_t id, bool timed, Micros now) const;

  std::optional<Layout> layout_{};  // empty: unknown layout
  bool signed_ids_ = false;
  std::set<std::string, std::less<>> timed_{};  // the tags of rule 2
  WallMs wall_{0};                              // the server's clock at said_
  Micros said_{0};
};

}  // namespace firn::client
