#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "server/front/desk/id_desk.h"
#include "server/front/net/protocol.h"

namespace firn::front {

// The fast path. Most requests on a connection repeat the bytes of an earlier one. If that was
// answered with a single id, the next is not parsed: an id is requested from its tag as usual, and
// the id is written into a copy of the earlier answer. Refusals and decisions of a tag, its
// plugins, the claim or a drain are never cached. Used by one IO thread.
class KnownRequests {
 public:
  explicit KnownRequests(IdDesk& desk) : desk_(desk) {}

  // Serves the request at the front of `in`. Nullopt, without an effect, if it must be parsed: it
  // is unknown, or its answer needs more than an id.
  std::optional<ServeStep> Serve(std::string_view in, OutBuffer& out) const;

  // Records that `request` was answered by `answer`, which ends with an id of `tag` and keeps the
  // connection open.
  void Remember(std::string_view request, std::string_view answer, const Tag& tag);

 private:
  static constexpr size_t kBytesMax = 1024;

  struct Known {
    std::string request{};
    std::string before_length{}, behind_length{};  // the answer's header without Content-Length's
                                                   // value
    const Tag* tag = nullptr;
  };

  IdDesk& desk_;
  std::array<Known, 4> known_;
  size_t oldest_ = 0;
};

}  // namespace firn::front
