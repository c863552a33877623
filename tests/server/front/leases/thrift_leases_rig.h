#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/server/front/leases/scripted_leases.h"
#include "tests/server/front/thrift_protocol_rig.h"

namespace firn::front {

class ThriftLeasesTest : public ThriftProtocolTest {
 protected:
  void SetUp() override {
    ThriftProtocolTest::SetUp();
    protocol_ = MakeThriftProtocol(GetParam(), issuing_.backend, issuing_.counters, &leases_);
  }

  static wire::LeaseAsk Valid() {
    wire::LeaseAsk ask;
    ask.__set_token("00112233445566778899aabbccddeeff");
    ask.__set_name("shop-1");
    ask.__set_clock_ms(1'735'689'600'000);
    return ask;
  }
  std::string Lease(const wire::LeaseAsk& ask = Valid()) {
    return calls_.Frame([&](wire::IdServiceClient& client) { client.send_lease(ask); });
  }
  std::string Renew(const wire::LeaseRenewal& renewal) {
    return calls_.Frame([&](wire::IdServiceClient& client) { client.send_renewLease(renewal); });
  }
  std::string Release(const wire::LeaseEnd& end) {
    return calls_.Frame([&](wire::IdServiceClient& client) { client.send_releaseLease(end); });
  }
  wire::LeaseTerms Terms(std::string_view answer) {
    wire::LeaseTerms terms;
    calls_.Answer(answer).recv_lease(terms);
    return terms;
  }
  wire::Refusal RefusalOf(const std::string& frame) {
    try {
      wire::LeaseTerms terms;
      Call(frame).recv_lease(terms);
    } catch (const wire::Refusal& refusal) {
      return refusal;
    }
    ADD_FAILURE() << "no refusal";
    return {};
  }
  wire::LeaseRefusal LeaseRefusalOf(const std::string& frame) {
    try {
      wire::LeaseTerms terms;
      Call(frame).recv_lease(terms);
    } catch (const wire::LeaseRefusal& refusal) {
      return refusal;
    }
    ADD_FAILURE() << "no refusal";
    return {};
  }

  ScriptedLeases leases_;
};

}  // namespace firn::front
