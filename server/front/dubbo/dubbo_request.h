#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace firn::front {

// The two Java interfaces that the server exports.
enum class DubboService : uint8_t { kFirn, kVesta };
inline constexpr std::array<std::string_view, 2> kDubboServices{
    "io.firn.IdService", "com.robert.vesta.service.intf.IdService"};

// Their methods, and Dubbo's own.
enum class DubboMethod : uint8_t {
  kEcho,
  kNextId,
  kNextIds,
  kNextText,
  kGenId,
  kExpId,
  kMakeId,
  kTransTime,
};

// The methods of a service, as listed in its URL in the registry.
std::string_view MethodsOf(DubboService service);

// A call, parsed from the body of a request. Reused for each request, to keep the memory of its
// texts.
struct DubboRequest {
  static constexpr size_t kNumbersMax = 6;

  DubboService service = DubboService::kFirn;
  DubboMethod method = DubboMethod::kEcho;
  bool generic = false;            // an Id is returned as a map
  bool takes_attachments = false;  // the answer must have attachments
  std::string tag{};
  std::array<int64_t, kNumbersMax> numbers{};
  size_t numbers_count = 0;
  std::string trace_id{};   // of the attachment traceparent, or else traceId; empty: no valid one
  std::string_view echo{};  // the bytes of the argument of $echo, within the body

  // Parses the body of a request in Hessian 2. Returns an empty text, or why the server cannot
  // answer it; `takes_attachments` is valid in both cases. A text of the caller may have
  // `text_bytes_max` bytes.
  std::string Read(std::string_view body, size_t text_bytes_max);

 private:
  class Parser;

  // Temporary texts of the parser, here to keep their memory.
  std::string path_{}, version_{}, name_{}, types_{}, key_{}, value_{};
};

}  // namespace firn::front
