#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "server/front/net/buffers.h"

namespace firn {
class Tag;  // declared only
}

namespace firn::front {

enum class HttpVerb : uint8_t { kGet, kPost, kPut, kDelete, kOther };

// The parts of one request that Firn uses. Views into the connection's input: valid for one call.
struct HttpRequest {
  static constexpr std::string_view kForm = "application/x-www-form-urlencoded";

  HttpVerb verb = HttpVerb::kOther;
  bool head = false;       // a GET whose answer has no body
  bool options = false;    // asks which verbs the path accepts
  std::string_view path;   // of the target, not decoded; "*" for OPTIONS *
  std::string_view query;  // after the question mark
  std::string_view content_type;
  std::string_view if_none_match;
  std::string_view body;
  std::string_view host;        // with its port; empty: the peer sent none
  std::string_view admin_word;  // the header X-Firn-Admin
  std::string_view origin;      // of the page in the browser; empty: not sent
  std::string_view fetch_site;  // Sec-Fetch-Site: the page's relation to this host
  std::string_view traceparent;
  bool keep_alive = true;
  bool http_1_0 = false;
  bool expects_continue = false;  // it sends its body after a 100 Continue

  // Whether Content-Type is `type`, such as "application/json"; parameters are ignored.
  bool HasType(std::string_view type) const;

  // The decoded value of a parameter from the query or, unless the request is a GET, from a form in
  // the body. Empty if it is absent; kInvalid if it cannot be decoded.
  Result<std::optional<std::string>> Parameter(std::string_view name) const;

  // kInvalid if a parameter has another name or is repeated, or if the body has an unsupported
  // type.
  Status TakesOnly(std::initializer_list<std::string_view> names) const;

  // This request with the members of its JSON body as a form, which is stored in `form`.
  Result<HttpRequest> WithForm(std::string& form) const;

  // The value of a parameter as a number: kInvalid unless it is one.
  Result<std::optional<int64_t>> Number(std::string_view name) const;
  // Like Number, but the number must not be negative.
  Result<std::optional<uint64_t>> Unsigned(std::string_view name) const;
};

// An answer. Reused, so that its body need not allocate.
struct HttpAnswer {
  int status = 200;
  std::string_view content_type = kText;
  std::string body;
  bool no_store = false;       // it contains ids: caches must not store it
  bool has_length = true;      // false: an answer to HEAD whose body was not created
  int32_t retry_after_ms = 0;  // 0: without Retry-After
  std::string_view allow;      // with status 405: GET and POST if permitted; AppendHttp adds HEAD
                               // and OPTIONS
  bool for_admins = false;     // other sites' pages must not frame it, and browsers must not guess
                               // its type
  const Tag* id_of = nullptr;  // set: the body is one id of this tag, from the fast path
  std::string etag;            // with its quotes; empty: none

  static constexpr std::string_view kText = "text/plain; charset=utf-8";
  static constexpr std::string_view kJson = "application/json";

  void Clear();  // keeps the memory
  void SetText(int code, std::string_view text);
  // Refuses the request's verb. `permitted`: a literal, such as "PUT, DELETE".
  void SetNotAllowed(std::string_view permitted);
};

// Whether `etag` is one of the tags in an If-None-Match.
bool MatchesEtag(std::string_view if_none_match, std::string_view etag);

// Writes the answer to `request`.
void AppendHttp(const HttpAnswer& answer, const HttpRequest& request, OutBuffer& out);

// Decodes the %XX in a part of a path.
Result<std::string> DecodePathPart(std::string_view part);

void AppendNumber(std::string& out, int64_t value);

}  // namespace firn::front
