#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "server/front/desk/backend.h"
#include "server/front/http/http_message.h"

namespace firn::front {

// JavaScript represents smaller numbers exactly.
inline constexpr int64_t kExactInJavaScript = int64_t{1} << 53;

// Describe ids, fields and ticks as JSON. No id is issued. kInvalid: the request is invalid. Pure
// functions, except for the backend's view.

// /v1/explain/{id}?layout=
Result<std::string> ExplainAsJson(const Backend& backend, const HttpRequest& request,
                                  std::string_view id);
// /v1/compose?...
Result<std::string> ComposeAsJson(const Backend& backend, const HttpRequest& request);
// /v1/time/{ticks}?layout=
Result<std::string> TimeAsJson(const Backend& backend, const HttpRequest& request,
                               std::string_view ticks);

}  // namespace firn::front
