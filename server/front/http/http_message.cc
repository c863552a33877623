#include "server/front/http/http_message.h"

#include <algorithm>
#include <charconv>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/base/url_encoding.h"
#include "common/json/json.h"

namespace firn::front {
namespace {

constexpr std::string_view kForm = HttpRequest::kForm;

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Payload Too Large";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Answer";
  }
}

bool MayHaveBody(HttpVerb verb) {
  return verb == HttpVerb::kPost || verb == HttpVerb::kPut || verb == HttpVerb::kDelete;
}

// The encoded value of `name` in "a=1&b=2", or nullopt.
std::optional<std::string_view> FindPair(std::string_view pairs, std::string_view name) {
  while (!pairs.empty()) {
    const std::string_view pair = pairs.substr(0, pairs.find('&'));
    pairs.remove_prefix(std::min(pairs.size(), pair.size() + 1));
    if (pair == name) return std::string_view();
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=') {
      return pair.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

// Fails if a pair has none of the names, or the name of an earlier pair. `seen` has a bit for each
// name.
Status CheckNames(std::string_view pairs, std::initializer_list<std::string_view> names,
                  uint64_t& seen) {
  while (!pairs.empty()) {
    const std::string_view pair = pairs.substr(0, pairs.find('&'));
    pairs.remove_prefix(std::min(pairs.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const std::string_view name = pair.substr(0, pair.find('='));
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end()) return Invalid("unknown parameter " + Quoted(name));
    const uint64_t bit = uint64_t{1} << (known - names.begin());
    if ((seen & bit) != 0) return Invalid(Cat(name, " is given twice"));
    seen |= bit;
  }
  return {};
}

// Digits need neither escaping nor an allocation.
void AppendField(OutBuffer& out, std::string_view name, int64_t value) {
  char digits[24];
  const char* end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.Append(name);
  out.Append(digits, static_cast<size_t>(end - digits));
  out.Append("\r\n");
}

// A path that accepts GET accepts HEAD; every path accepts OPTIONS.
void AppendAllow(std::string_view verbs, OutBuffer& out) {
  constexpr std::string_view kGet = "GET";
  out.Append("Allow: ");
  if (verbs.starts_with(kGet)) {
    out.Append("GET, HEAD");
    verbs.remove_prefix(kGet.size());
  }
  out.Append(verbs);
  out.Append(", OPTIONS\r\n");
}

}  // namespace

bool HttpRequest::HasType(std::string_view type) const {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  const std::string_view own = content_type.substr(0, content_type.find_first_of("; \t"));
  return std::equal(own.begin(), own.end(), type.begin(), type.end(), same);
}

Status HttpRequest::TakesOnly(std::initializer_list<std::string_view> names) const {
  if (!body.empty() && !MayHaveBody(verb)) {
    return Invalid("only a POST, PUT or DELETE request can have a body");
  }
  if (!body.empty() && !HasType(kForm)) {
    return Invalid(Cat("the Content-Type of the body must be application/json or ", kForm));
  }
  uint64_t seen = 0;
  FIRN_TRY(CheckNames(query, names, seen));
  return CheckNames(body, names, seen);
}

Result<std::optional<std::string>> HttpRequest::Parameter(std::string_view name) const {
  auto found = FindPair(query, name);
  if (!found && MayHaveBody(verb) && HasType(kForm)) {
    found = FindPair(body, name);
  }
  if (!found) return std::optional<std::string>();
  auto decoded = UrlDecode(*found);
  if (!decoded.ok()) return decoded.status().WithContext(name);
  return std::optional<std::string>(std::move(decoded).value());
}

Result<HttpRequest> HttpRequest::WithForm(std::string& form) const {
  constexpr size_t kBytesMax = 64 << 10, kValuesMax = 16;  // more than any path needs
  if (body.empty() || !HasType(HttpAnswer::kJson)) return *this;
  const Result<Json> object = ParseJson(body, kBytesMax, kValuesMax);
  if (!object.ok()) return object.status().WithContext("the JSON body");
  form.clear();
  for (const auto& [name, value] : object->members()) {
    const std::optional<int64_t> number = value.whole();
    if (!number && !value.is_string()) {
      return Invalid(Cat(Quoted(name), " is neither a text nor a whole number"));
    }
    form += Cat(form.empty() ? "" : "&", UrlEncode(name), "=",
                number ? Cat(*number) : UrlEncode(value.text()));
  }
  HttpRequest same = *this;
  same.content_type = kForm;
  same.body = form;
  return same;
}

Result<std::optional<int64_t>> HttpRequest::Number(std::string_view name) const {
  FIRN_ASSIGN(const auto text, Parameter(name));
  if (!text) return std::optional<int64_t>();
  const auto value = ParseNumber<int64_t>(*text);
  if (!value) return Invalid(Cat(name, " is not a number"));
  return value;
}

Result<std::optional<uint64_t>> HttpRequest::Unsigned(std::string_view name) const {
  FIRN_ASSIGN(const auto number, Number(name));
  if (!number) return std::optional<uint64_t>();
  if (*number < 0) return Invalid(Cat(name, " is negative"));
  return std::optional(static_cast<uint64_t>(*number));
}

void HttpAnswer::Clear() {
  status = 200;
  content_type = kText;
  body.clear();
  no_store = false;
  has_length = true;
  retry_after_ms = 0;
  allow = {};
  for_admins = false;
  id_of = nullptr;
  etag.clear();
}

void HttpAnswer::SetText(int code, std::string_view text) {
  status = code;
  content_type = kText;
  body = text;
}

void HttpAnswer::SetNotAllowed(std::string_view permitted) {
  SetText(405, permitted);
  body += '\n';
  allow = permitted;
}

bool MatchesEtag(std::string_view if_none_match, std::string_view etag) {
  while (!if_none_match.empty()) {
    std::string_view tag = if_none_match.substr(0, if_none_match.find(','));
    if_none_match.remove_prefix(std::min(if_none_match.size(), tag.size() + 1));
    tag.remove_prefix(std::min(tag.size(), tag.find_first_not_of(" \t")));
    tag = tag.substr(0, tag.find_last_not_of(" \t") + 1);
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == etag || tag == "*") return true;
  }
  return false;
}

void AppendHttp(const HttpAnswer& answer, const HttpRequest& request, OutBuffer& out) {
  const bool has_body = answer.status != 304 && answer.status != 204;
  if (answer.status == 200) {
    out.Append("HTTP/1.1 200 OK\r\n");
  } else {
    char code[8];
    const char* end = std::to_chars(code, code + sizeof code, answer.status).ptr;
    out.Append("HTTP/1.1 ");
    out.Append(code, static_cast<size_t>(end - code));
    out.Append(" ");
    out.Append(ReasonPhrase(answer.status));
    out.Append("\r\n");
  }
  if (has_body) {
    out.Append("Content-Type: ");
    out.Append(answer.content_type);
    out.Append("\r\n");
    if (answer.has_length) {
      AppendField(out, "Content-Length: ", static_cast<int64_t>(answer.body.size()));
    }
  }
  if (!answer.etag.empty()) {
    out.Append("ETag: ");
    out.Append(answer.etag);
    out.Append("\r\n");
  }
  if (answer.no_store) out.Append("Cache-Control: no-store\r\n");
  if (answer.retry_after_ms > 0) {
    AppendField(out, "Retry-After: ", (answer.retry_after_ms + 999) / 1000);
  }
  if (!answer.allow.empty()) {
    AppendAllow(answer.allow, out);
  }
  if (answer.for_admins) {
    out.Append(
        "X-Content-Type-Options: nosniff\r\n"
        "Content-Security-Policy: frame-ancestors 'none'\r\n");
  }
  if (!request.keep_alive) out.Append("Connection: close\r\n");
  if (request.keep_alive && request.http_1_0) out.Append("Connection: keep-alive\r\n");
  out.Append("\r\n");
  if (has_body && !request.head) out.Append(answer.body);
}

Result<std::string> DecodePathPart(std::string_view part) {
  if (part.find('%') == std::string_view::npos) return std::string(part);
  // In a path, unlike in a query, a plus sign is not a space.
  std::string exact;
  for (const char c : part) exact += c == '+' ? std::string_view("%2B") : std::string_view(&c, 1);
  return UrlDecode(exact);
}

void AppendNumber(std::string& out, int64_t value) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

}  // namespace firn::front
