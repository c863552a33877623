#include "tests/server/front/form.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "common/base/status.h"
#include "tests/support/tls_authority.h"

namespace firn::front {
namespace {

// Suites and tests by their names in the code; a suite without a test means all of its tests.
constexpr struct {
  Form form;
  std::string_view suite, test, why;
} kSenseless[] = {
    {Form::kTwice, "SameCallAgainTest", "", "it sends calls again itself"},
    {Form::kTwice, "SameCallsTest", "", "it sends calls again itself"},
    {Form::kTwice, "SameRequestAgainTest", "", "it sends requests again itself"},
    {Form::kTwice, "HttpStrictTest", "AHeadIssuesNothing", "checks for gaps between ids"},
    {Form::kTls, "FrontDoorTest", "AsksUnframedThriftToUseFrames", "its client does not encrypt"},
    {Form::kTls, "FrontDoorTest", "RecoversAfterItRanOutOfDescriptors",
     "a peer that is not let in cannot complete a handshake"},
    {Form::kTls, "FrontDoorTest", "ServesOthersDespiteThousandsOfIncompleteRequests",
     "thousands of handshakes under sanitizers exceed the timeout of an incomplete request"},
    {Form::kTls, "HttpProtocolTest", "", "it calls a protocol directly, without a door"},
    {Form::kTls, "HttpReadingTest", "", "it calls a protocol directly, without a door"},
    {Form::kTls, "SameRequestAgainTest", "", "it calls a protocol directly, without a door"},
    {Form::kTls, "ThriftServersTest", "", "it calls a protocol directly, without a door"},
};

SSL_CTX* MakeClient(const std::string& ca) {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  if (SSL_CTX_load_verify_file(context, ca.c_str()) != 1)
    Die("the authority's certificate cannot be loaded");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

}  // namespace

Form ChosenForm() {
  static const Form chosen = [] {
    const char* const said = std::getenv("FIRN_FRONT_FORM");
    const std::string_view form = said == nullptr ? "plain" : said;
    if (form == "plain") return Form::kPlain;
    if (form == "twice") return Form::kTwice;
    if (form != "tls") Die("FIRN_FRONT_FORM is plain, twice or tls");
    return Form::kTls;
  }();
  return chosen;
}

std::string_view SenselessHere() {
  const auto* const running = testing::UnitTest::GetInstance()->current_test_info();
  // Removes what a parameter adds: "Codings/SameCallsTest", "StopWhereIdsAreExhausted/Binary".
  std::string_view suite = running->test_suite_name(), test = running->name();
  suite.remove_prefix(suite.find('/') + 1);  // npos + 1 is 0
  test = test.substr(0, test.find('/'));
  for (const auto& row : kSenseless) {
    if (row.form != ChosenForm() || row.suite != suite) continue;
    if (row.test.empty() || row.test == test) return row.why;
  }
  return {};
}

const FormTls& TlsOfForm() {
  static TlsAuthority authority("forms");
  static const FormTls tls = [] {
    authority.Sign("server", "IP:127.0.0.1");
    return FormTls{authority.File("server.crt"), authority.File("server.key"),
                   MakeClient(authority.File("ca.crt"))};
  }();
  return tls;
}

}  // namespace firn::front
