#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "server/front/net/buffers.h"

namespace firn {
class Tag;  // known by name only
}

namespace firn::front {

enum class HttpVerb : uint8_t { kGet, kPost, kPut, kDelete, kOther };

// The parts of one request that Firn uses. Views into the connection's input: valid for one call.
struct HttpRequest {
  static constexpr std::string_view kForm = "application/x-www-form-urlencoded";

  HttpVerb verb = HttpVerb::kOther;
  bool head = false;       // a GET whose answer's body is omitted
  bool options = false;    // asks for the verbs that the path accepts
  std::string_view path;   // of the target, not decoded; "*" of OPTIONS
  std::string_view query;  // after the question mark
  std::string_view content_type;
  std::string_view if_none_match;
  std::string_view body;
  std::string_view host;        // with its port; empty: the peer sends none
  std::string_view admin_word;  // of the field X-Firn-Admin
  std::string_view origin;      // of the page that a browser shows; empty: no browser says
  std::string_view fetch_site;  // Sec-Fetch-Site: how that page relates to this host
  std::string_view traceparent;
  bool keep_alive = true;
  bool http_1_0 = false;
  bool expects_continue = false;  // its body comes after a 100 Continue

  // Whether the body is of a type, such as "application/json"; parameters may follow it.
  bool HasType(std::string_view type) const;

  // The decoded value of a parameter, from the query or, unless it is a GET, from a form's body.
  // Empty if it is absent; kInvalid if it cannot be decoded.
  Result<std::optional<std::string>> Parameter(std::string_view name) const;

  // kInvalid if a parameter has another name or is repeated, or if the body is not read.
  Status TakesOnly(std::initializer_list<std::string_view> names) const;

  // This request with the members of a JSON body as a form, which `form` then stores.
  Result<HttpRequest> WithForm(std::string& form) const;

  // The same as a number: kInvalid unless it is one.
  Result<std::optional<int64_t>> Number(std::string_view name) const;
  // The same as a number that is not negative.
  Result<std::optional<uint64_t>> Unsigned(std::string_view name) const;
};

// An answer. Reused, so that its body need not allocate.
struct HttpAnswer {
  int status = 200;
  std::string_view content_type = kText;
  std::string body;
  bool no_store = false;       // it contains ids: no cache may store it
  bool has_length = true;      // false: the answer to a HEAD, whose body was never created
  int32_t retry_after_ms = 0;  // 0: no advice
  std::string_view allow;      // with status 405: GET and POST if permitted; the rest is added
  bool for_admins = false;     // pages of other sites may neither frame it nor guess its content
  const Tag* id_of = nullptr;  // set: the body is one id of this tag, got on the fast path
  std::string etag;            // of this very body, with its quotes; empty: none

  static constexpr std::string_view kText = "text/plain; charset=utf-8";
  static constexpr std::string_view kJson = "application/json";

  void Clear();  // except its memory
  // Makes it one line of text.
  void SetText(int code, std::string_view text);
  // Refuses the request's verb. `permitted`: a literal, such as "PUT, DELETE".
  void SetNotAllowed(std::string_view permitted);
};

// Whether one of the tags of an If-None-Match is `etag`.
bool MatchesEtag(std::string_view if_none_match, std::string_view etag);

// Writes `answer` to `request`, and returns whether the connection stays open.
void AppendHttp(const HttpAnswer& answer, const HttpRequest& request, OutBuffer& out);

// A piece of a path, with its %XX decoded.
Result<std::string> DecodePathPart(std::string_view part);

void AppendNumber(std::string& out, int64_t value);

}  // namespace firn::front
