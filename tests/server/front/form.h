#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <openssl/ssl.h>

#include "server/front/net/protocol.h"

namespace firn::front {

// How the front tests send their requests. The tests are the same in each form: ctest runs each
// program once for every form. To choose one by hand, set FIRN_FRONT_FORM=twice or tls.
enum class Form : uint8_t {
  kPlain,
  kTwice,  // each request twice; the second answer is checked
  kTls
};
Form ChosenForm();

// Returns why the running test is not applicable in this form; empty if it is. form.cc lists all
// such tests. For a fixture's SetUp:
//
//     if (const auto why = SenselessHere(); !why.empty()) GTEST_SKIP() << why;
std::string_view SenselessHere();

// Certificate and key of this process's servers, and the TLS context of a client that trusts them.
struct FormTls {
  std::string cert, key;
  SSL_CTX* client;
};
const FormTls& TlsOfForm();

// A parked request of a connection.
struct Waiting {
  std::unique_ptr<ParkedRequest> request{};
  size_t bytes = 0;
};

// Serves `in`, or retries the parked request, as a connection does. The bytes of a parked request
// are consumed when it is answered.
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

// Serves `in` in the form of this run. The protocol may cache the first of two requests. The
// numbers that it took from `next` are returned, so that the second request gets the same answer.
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
