#include "server/front/http/admin_guard.h"

#include <algorithm>

#include <strings.h>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "common/net/ip_address.h"

namespace firn::front {
namespace {

// The host without its port and the brackets of an IPv6 address.
std::string_view WithoutPort(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

bool Contains(const std::vector<std::string>& hosts, std::string_view host) {
  const std::string name(WithoutPort(host));
  return std::any_of(hosts.begin(), hosts.end(), [&name](const std::string& known) {
    return strcasecmp(name.c_str(), known.c_str()) == 0;
  });
}

// Whether it is an address or localhost, which no other site can use as its name.
bool IsOwn(std::string_view host) {
  const std::string name(WithoutPort(host));
  return IsIpAddress(name) || strcasecmp(name.c_str(), "localhost") == 0;
}

// The host of an origin, with its port: "https://host:port".
std::string_view HostOf(std::string_view origin) {
  const size_t scheme = origin.find("://");
  return scheme == origin.npos ? origin : origin.substr(scheme + 3);
}

bool IsOfOtherPage(const HttpRequest& request) {
  const std::string_view site = request.fetch_site;
  if (site == "cross-site") return true;
  if (request.origin.empty() || site == "same-origin" || site == "none") return false;
  const std::string_view host = HostOf(request.origin);
  return host.size() != request.host.size() ||
         strncasecmp(host.data(), request.host.data(), host.size()) != 0;
}

}  // namespace

bool PageGuard::Refuses(const HttpRequest& request, HttpAnswer& answer) const {
  if (IsOfOtherPage(request) && !Contains(hosts_, HostOf(request.origin))) {
    answer.SetText(403, Cat("a page of another site, ", Quoted(request.origin),
                            ", sent this request; --http_hosts lists permitted sites\n"));
    return true;
  }
  const std::string_view host = request.host;
  if (hosts_.empty() || host.empty() || IsOwn(host) || Contains(hosts_, host)) return false;
  answer.SetText(403, Cat("the public port does not accept the host name ", Quoted(host),
                          "; use an IP address, or add the name to --http_hosts\n"));
  return true;
}

bool AdminGuard::Refuses(const HttpRequest& request, HttpAnswer& answer) const {
  const std::string_view host = request.host;
  if (host.empty() || IsOwn(host) || Contains(hosts_, host)) return false;
  answer.SetText(403, Cat("the admin port does not accept the host name ", Quoted(request.host),
                          "; use an IP address, or add the name to --admin_hosts\n"));
  return true;
}

bool AdminGuard::RefusesChange(const HttpRequest& request, HttpAnswer& answer) {
  if (request.admin_word == "1") return false;
  answer.SetText(
      403,
      "a change requires the header X-Firn-Admin: 1, which pages of other sites cannot send\n");
  return true;
}

}  // namespace firn::front
