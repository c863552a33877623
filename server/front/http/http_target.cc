#include "server/front/http/http_target.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include <strings.h>

#include "common/base/parse.h"
#include "common/net/ip_address.h"

namespace firn::front {
namespace {

// Of RFC 3986's names those whose every character is one in whoever's eyes. Commas, percent signs
// and the like stand in no name that can be looked up, and a comma is also what is left of two
// Hosts that somebody has made one of.
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

// What stands behind a host. A port may be left out behind its colon.
bool IsColonAndPort(std::string_view text) {
  if (text.empty() || text == ":") return true;
  return text.front() == ':' && ParseNumber<uint16_t>(text.substr(1));
}

// "http://" at the front, with its length; 0: there is none.
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
  // Without a path it is the root, and where OPTIONS asks for nothing else the server itself.
  if (target.path.empty()) target.path = options && mark == text.npos ? "*" : "/";
  return target;
}

}  // namespace firn::front
