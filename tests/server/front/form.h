#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <openssl/ssl.h>

#include "server/front/net/protocol.h"

namespace firn::front {

// How the requests of the front tests are sent. The tests are the same in each form: ctest runs the
// programs once more for each other form; to do so by hand, set FIRN_FRONT_FORM=twice or tls.
enum class Form : uint8_t {
  kPlain,
  kTwice,  // each request twice, of which the second answer is checked
  kTls
};
Form ChosenForm();

// Returns why the running test makes no sense in this form; empty if it does. form.cc lists all
// such tests. For a fixture's SetUp:
//
//     if (const auto why = SenselessHere(); !why.empty()) GTEST_SKIP() << why;
std::string_view SenselessHere();

// A server's certificate and key of this process, and the TLS context of a client that accepts
// them.
struct FormTls {
  std::string cert, key;
  SSL_CTX* client;
};
const FormTls& TlsOfForm();

// The request of a connection that waits.
struct Waiting {
  std::unique_ptr<ParkedRequest> request{};
  size_t bytes = 0;
};

// Serves `in`, or tries again the request that waits, as a connection does. The bytes of a request
// that waits are consumed when it is answered.
inline ServeStep ServeOrRetry(Protocol& protocol, Waiting& waiting, std::string_view in,
                              DoorCall& call, OutBuffer& out) {
  const Waiting before = std::exchange(waiting, {});
  ServeStep step =
      before.request ? before.request->Retry(call, out) : protocol.Serve(in, call, out);
  if (before.request) step.bytes = before.bytes;
  while (step.kind == ServeStep::Kind::kMore) {
    const size_t bytes = step.bytes;
    step = std::exchange(step.parked, nullptr)->Retry(call, out);
    step.bytes = bytes;
  }
  if (step.kind == ServeStep::Kind::kPark) waiting = {std::move(step.parked), step.bytes};
  return step;
}

// Serves `in` as the form says. The protocol may cache the first of two requests; the numbers that
// it took from `next` are given back, so that the second one gets the same answer.
template <typename Number>
ServeStep ServeInForm(Protocol& protocol, Waiting& waiting, std::string_view in, DoorCall& call,
                      OutBuffer& out, Number& next) {
  const auto first_number = next.load();
  const uint64_t report = call.report;
  const size_t before = out.size();
  ServeStep step = ServeOrRetry(protocol, waiting, in, call, out);
  if (ChosenForm() != Form::kTwice || step.kind != ServeStep::Kind::kServed) return step;
  next = first_number;
  call.report = report;
  out.Truncate(before);
  return ServeOrRetry(protocol, waiting, in, call, out);
}

}  // namespace firn::front
