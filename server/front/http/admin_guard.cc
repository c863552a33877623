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

std::string AdminGuard::WhyNot(const HttpRequest& request) const {
  if (request.host.empty() || Knows(request.host)) return {};
  return Cat("the admin port does not accept the host name ", Quoted(request.host),
             "; use an IP address, or add the name to --admin_hosts");
}

std::string AdminGuard::WhyNotChange(const HttpRequest& request) const {
  if (request.admin_word == "1") return {};
  return "a change requires the header X-Firn-Admin: 1, which pages of other sites cannot send";
}

}  // namespace firn::front
