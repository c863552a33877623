#include "server/front/http/http_target.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include <strings.h>

#include "common/base/parse.h"
#include "common/net/ip_address.h"

namespace firn::front {
namespace {

// Those names of RFC 3986 whose every character every parser reads as one. Commas, percent signs
// and the like are in no name that can be resolved, and a comma is also the result of joining two
// Host fields.
bool IsName(std::string_view host) {
  const auto fits = [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
           c == '_' || c == '~';
  };
  return !host.empty() && std::all_of(host.begin(), host.end(), fits);
}

bool IsIpv6(std::string_view host) {
  return host.find(':') != host.npos && IsIpAddress(std::string(host));
}

// What follows a host. The port may be missing after its colon.
bool IsColonAndPort(std::string_view text) {
  if (text.empty() || text == ":") return true;
  return text.front() == ':' && ParseNumber<uint16_t>(text.substr(1));
}

// Returns the length of "http://" at the front; 0: there is none.
size_t SchemeLength(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    const bool fits = target.size() >= scheme.size();
    if (fits && strncasecmp(target.data(), scheme.data(), scheme.size()) == 0) return scheme.size();
  }
  return 0;
}

}  // namespace

bool IsHostAndPort(std::string_view text) {
  const bool in_brackets = text.starts_with('[');
  const size_t end = std::min(text.find(in_brackets ? ']' : ':'), text.size());
  const std::string_view host = text.substr(0, end), rest = text.substr(end);
  if (!in_brackets) return IsName(host) && IsColonAndPort(rest);
  return rest.starts_with(']') && IsIpv6(host.substr(1)) && IsColonAndPort(rest.substr(1));
}

std::optional<HttpTarget> ReadTarget(std::string_view text, bool options) {
  HttpTarget target;
  if (options && text == "*") {
    target.path = text;
    return target;
  }
  if (!text.starts_with('/')) {
    const size_t scheme = SchemeLength(text);
    if (scheme == 0) return std::nullopt;
    text.remove_prefix(scheme);
    target.authority = text.substr(0, text.find_first_of("/?"));
    if (!IsHostAndPort(target.authority)) return std::nullopt;
    text.remove_prefix(target.authority.size());
  }
  const size_t mark = text.find('?');
  target.path = text.substr(0, mark);
  if (mark != text.npos) target.query = text.substr(mark + 1);
  // Without a path it is the root, or for OPTIONS without a path the server itself.
  if (target.path.empty()) target.path = options && mark == text.npos ? "*" : "/";
  return target;
}

}  // namespace firn::front
