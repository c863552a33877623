#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace firn {

// The answer to one call.
struct TongueAnswer {
  size_t bytes = 0;  // its length; 0: incomplete
  std::vector<int64_t> ids{};
  bool refused = false;  // with a reason
  std::string fault{};   // a violation of the contract; empty: none
};

// A protocol for requesting ids. Its parser is strict: it reports everything that the contract does
// not permit as a fault. Used by one thread.
class Tongue {
 public:
  virtual ~Tongue() = default;

  // Returns the bytes of a request for `count` ids of `tag`. `number` identifies this call, if the
  // protocol has a field for it.
  virtual std::string Call(const std::string& tag, int32_t number, int32_t count) = 0;

  // Parses the answer to that call, at the front of `bytes`.
  virtual TongueAnswer Answer(std::string_view bytes, int32_t number, int32_t count) = 0;
};

enum class TongueName : uint8_t { kThriftBinary, kThriftCompact, kHttp };
std::unique_ptr<Tongue> MakeTongue(TongueName name);
const char* TextOf(TongueName name);

}  // namespace firn
