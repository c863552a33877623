#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "server/front/desk/id_desk.h"
#include "server/front/net/buffers.h"
#include "server/front/net/protocol.h"
#include "server/front/redis/redis_commands.h"

namespace firn::front {

// The fast path. Most requests on a connection are an INCR of a tag that was used before. Such a
// request is found by its bytes, and an id is requested from its tag; equal requests behind it are
// served with it, or wait with it. Nothing is cached about the tag: claim, plugins, draining and
// limits are checked for each request. Used by one IO thread; allocates nothing for requests that
// do not wait.
class KnownIncrements {
 public:
  // Both must outlive it. `integer_max`: the largest id that is answered as an integer.
  KnownIncrements(IdDesk& desk, RedisCommands& commands, int64_t integer_max)
      : desk_(desk), commands_(commands), integer_max_(integer_max) {}

  // Nullopt, without an effect: the request at the front must be parsed.
  std::optional<ServeStep> Serve(std::string_view in, DoorCall& door, OutBuffer& out);

  // Records that `request` is an INCR of this tag by its full name.
  void Remember(std::string_view request, const Tag& tag);

 private:
  static constexpr int kPlaceBits = 4;
  static constexpr size_t kBytesMax = 120;

  struct Known {
    const Tag* tag = nullptr;  // null: unused
    size_t size = 0;
    std::array<char, kBytesMax> request{};

    bool IsAt(std::string_view in) const;
  };

  static size_t PlaceOf(std::string_view request);

  IdDesk& desk_;
  RedisCommands& commands_;
  const int64_t integer_max_;
  std::array<Known, 1 << kPlaceBits> known_{};
};

}  // namespace firn::front
