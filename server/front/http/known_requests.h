#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "server/front/desk/id_desk.h"
#include "server/front/net/protocol.h"

namespace firn::front {

// Most requests on a connection are the bytes of one before. Where that one was answered with a
// single id in the short way, the next is answered without being parsed: its tag is asked for an id
// as always, and the id goes into the answer of before. What a tag, its plugins, the claim or a
// drain have to say is never kept. One IO thread's.
class KnownRequests {
 public:
  explicit KnownRequests(IdDesk& desk) : desk_(desk) {}

  // Serves what stands at the front of `in`. Nothing, with no trace, when it is not known, or has
  // more to be told than an id: then it has to be parsed.
  std::optional<ServeStep> Serve(std::string_view in, const DoorCall& door, OutBuffer& out) const;

  // `request` was answered by `answer`, which ends in an id of `tag` and leaves the connection
  // open.
  void Remember(std::string_view request, std::string_view answer, const Tag& tag);

 private:
  static constexpr size_t kBytesMax = 1024;

  struct Known {
    std::string request{};
    std::string before_length{}, behind_length{};  // the answer's head, but for the body's length
    const Tag* tag = nullptr;
  };

  IdDesk& desk_;
  std::array<Known, 4> known_;
  size_t oldest_ = 0;
};

}  // namespace firn::front
