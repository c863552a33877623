#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "server/front/net/protocol.h"

namespace firn::front {

// How the requests of the front tests travel. The cases are the same in each form: ctest runs the
// programs once more for each other one, and FIRN_FRONT_FORM=twice or tls does by hand.
enum class Form : uint8_t {
  kPlain,
  kTwice,  // each request twice, and what is looked at is the second answer
  kTls
};
Form ChosenForm();

// Why the running case makes no sense in this form; empty: it does. All such cases are listed in
// form.cc. For a fixture's SetUp:
//
//     if (const auto why = SenselessHere(); !why.empty()) GTEST_SKIP() << why;
std::string_view SenselessHere();

// A server's certificate and key, and what a client of it begins with; of this process.
struct FormTls {
  std::string cert, key;
  SSL_CTX* client;
};
const FormTls& TlsOfForm();

// Serves `in` as the form says. The first of two is one that the protocol may remember; what it
// took of the numbers that `next` counts is given back, so that the second is told the same.
template <typename Number>
ServeStep ServeInForm(Protocol& protocol, std::string_view in, DoorCall& call, OutBuffer& out,
                      Number& next) {
  const auto first_number = next.load();
  const size_t before = out.size();
  const ServeStep step = protocol.Serve(in, call, out);
  if (ChosenForm() != Form::kTwice || step.kind != ServeStep::Kind::kServed) return step;
  next = first_number;
  out.Truncate(before);
  return protocol.Serve(in, call, out);
}

}  // namespace firn::front
