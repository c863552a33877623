#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace firn {

// What came back for one call.
struct TongueAnswer {
  size_t bytes = 0;  // how long it is; 0: it is not whole yet
  std::vector<int64_t> ids{};
  bool refused = false;  // with a reason
  std::string fault{};   // what is wrong about it; empty: nothing
};

// A language in which ids are asked for, strictly read: everything that the contract does not allow
// is a fault. Used by one thread.
class Tongue {
 public:
  virtual ~Tongue() = default;

  // The bytes that ask for `count` ids of `tag`. `number` tells this call from others, where the
  // language has a place for it.
  virtual std::string Call(const std::string& tag, int32_t number, int32_t count) = 0;

  // The answer to that call, at the front of `bytes`.
  virtual TongueAnswer Answer(std::string_view bytes, int32_t number, int32_t count) = 0;
};

enum class TongueName : uint8_t { kThriftBinary, kThriftCompact, kHttp };
std::unique_ptr<Tongue> MakeTongue(TongueName name);
const char* TextOf(TongueName name);

}  // namespace firn
