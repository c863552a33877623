#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/front/http/http_message.h"

namespace firn::front {

// Keeps pages of other sites from taking ids and leases from the public port through a visitor's
// browser. A browser says which page sends a request (Origin) and whether that page belongs to this
// host (Sec-Fetch-Site). A name that such a page points at this address passes as its own host,
// unless only listed names are permitted.
//
// Thread-compatible.
class PageGuard {
 public:
  // `hosts`: the names that requests may use besides addresses and localhost, without ports, and
  // whose pages may send requests. Empty: every name.
  explicit PageGuard(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}

  // Answers 403 if a page of another site sends the request, or its host name is not permitted.
  // Returns whether it did.
  bool Refuses(const HttpRequest& request, HttpAnswer& answer) const;

 private:
  const std::vector<std::string> hosts_;
};

// Keeps other sites' pages, open in an operator's browser, from speaking for the operator. A page
// can make the browser send requests here, also under a name of its own that it points at this
// address; but it can choose neither the name that the browser shows in Host, nor set a field of
// ours without being asked for leave, which is never given.
//
// Thread-compatible.
class AdminGuard {
 public:
  // Besides addresses written as numbers, and `localhost`: the names by which the admin side may be
  // called, without ports.
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
