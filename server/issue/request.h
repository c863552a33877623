#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace firn {

// The interface through which a request arrived.
enum class Method : uint8_t { kEmbedded = 0, kThrift = 1, kHttp = 2, kRedis = 3, kDubbo = 4 };
inline constexpr size_t kMethods = 5;

// Value of the method field of layouts that have one (Vesta's): 0 embedded, 1 RPC, 2 REST.
inline constexpr uint64_t kMethodFieldMax = 2;
constexpr uint64_t MethodField(Method method) {
  switch (method) {
    case Method::kThrift:
    case Method::kRedis:
    case Method::kDubbo:
      return 1;
    case Method::kHttp:
      return 2;
    case Method::kEmbedded:
      break;
  }
  return 0;
}

// Form in which the caller gets the ids. Plugins may depend on it: permuted numbers do not form a
// run.
enum class Form : uint8_t {
  kNumbers,
  kText,
  kRuns,
  kOneRun,  // as one run of stride 1; the reply contains only its last number
};

// A caller's request. A view: `tag` must outlive the call.
struct Request {
  std::string_view tag{};
  int64_t count = 1;
  Form form = Form::kNumbers;
  Method method = Method::kEmbedded;
  std::string_view client{};    // the peer's address, for logs and histories, or empty
  std::string_view trace_id{};  // of the caller's trace, for logs and histories, or empty
  bool may_create = false;      // whether this first use may create the tag
};

}  // namespace firn
