#include "server/front/http/admin_guard.h"

#include <algorithm>

#include <strings.h>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "common/net/ip_address.h"

namespace firn::front {
namespace {

// The host without its port, and without the brackets of an IPv6 address.
std::string_view WithoutPort(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

bool AdminGuard::Knows(std::string_view host) const {
  const std::string name(WithoutPort(host));
  const auto is = [&name](const std::string& known) {
    return strcasecmp(name.c_str(), known.c_str()) == 0;
  };
  return IsIpAddress(name) || is("localhost") || std::any_of(hosts_.begin(), hosts_.end(), is);
}

bool AdminGuard::Refuses(const HttpRequest& request, HttpAnswer& answer) const {
  if (request.host.empty() || Knows(request.host)) return false;
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
