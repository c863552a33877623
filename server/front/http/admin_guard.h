#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/front/http/http_message.h"

namespace firn::front {

// Prevents pages of other sites from taking ids and leases from the public port through a visitor's
// browser. A browser names the page that sends a request (Origin) and its relation to this host
// (Sec-Fetch-Site). A page whose own name resolves to this address counts as the same site, unless
// only listed names are permitted.
//
// Thread-compatible.
class PageGuard {
 public:
  // `hosts`: host names, without ports, that requests may use besides addresses and localhost.
  // Pages of these hosts may send requests. Empty: every name.
  explicit PageGuard(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}

  // Answers 403 if a page of another site sends the request, or its host name is not permitted.
  // Returns whether it did.
  bool Refuses(const HttpRequest& request, HttpAnswer& answer) const;

 private:
  const std::vector<std::string> hosts_;
};

// Prevents pages of other sites, open in an operator's browser, from using the admin side. Such a
// page can send requests here, even under another name that resolves to this address. But it cannot
// choose the Host header, and it cannot send X-Firn-Admin: the browser would ask this server for
// permission first (CORS), which it never gives.
//
// Thread-compatible.
class AdminGuard {
 public:
  // `hosts`: the names, without ports, that requests may use besides IP addresses and localhost.
  explicit AdminGuard(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}

  // Answers 403 if the request's host name is neither an IP address, localhost nor one of `hosts`.
  // Returns whether it did.
  bool Refuses(const HttpRequest& request, HttpAnswer& answer) const;
  // Answers 403 if the request lacks the header X-Firn-Admin. Returns whether it did.
  static bool RefusesChange(const HttpRequest& request, HttpAnswer& answer);

 private:
  const std::vector<std::string> hosts_;
};

}  // namespace firn::front
