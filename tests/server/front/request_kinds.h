#pragma once

#include <string>
#include <vector>

#include "tests/server/front/thrift_calls.h"

namespace firn::front {

// One request of every kind that the public port accepts. Tests truncate or damage them.
inline std::vector<std::string> KindsOfRequests() {
  wire::ComposeRequest fields;
  fields.__set_time_ms(1'700'000'000'000);
  fields.__set_layout("firn");
  wire::LeaseAsk ask;
  ask.__set_name("shop");
  ask.__set_clock_ms(1'735'689'600'000);
  ask.__set_rack(-1);
  wire::LeaseRenewal renewal;
  renewal.__set_lease("5f0c");
  renewal.__set_ahead_ms(60'000);
  wire::LeaseEnd end;
  end.__set_used_tick(7);
  const std::string post =
      "POST /v1/ids/default HTTP/1.1\r\nHost: x\r\nContent-Type: "
      "application/x-www-form-urlencoded\r\n";
  std::vector<std::string> kinds = {
      "GET /v1/ids/default?count=3 HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET http://[::1]:7609/genid?a HTTP/1.1\r\nHost: [::1]:7609\r\nConnection: close\r\n\r\n",
      "\r\n\r\nOPTIONS * HTTP/1.1\r\nHost:\r\n\r\n\r\nHEAD /genid HTTP/1.0\r\n\r\n",
      "*2\r\n$4\r\nINCR\r\n$7\r\ndefault\r\n*1\r\n$4\r\nQUIT\r\n",
      "*3\r\n$8\r\nFIRN.IDS\r\n$7\r\ndefault\r\n$3\r\n100\r\n",
      "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n",
      post + "Content-Length: 7\r\n\r\ncount=2",
      post + "Transfer-Encoding: chunked\r\n\r\n3\r\ncou\r\n4;x=y\r\nnt=2\r\n0\r\nT: v\r\n\r\n"};
  for (const ThriftCoding coding : {ThriftCoding::kBinary, ThriftCoding::kCompact}) {
    ThriftCalls calls(coding);
    using Client = wire::IdServiceClient;
    kinds.push_back(calls.GetId("default"));
    kinds.push_back(calls.Frame([](Client& c) { c.send_getRuns("default", 1000); }));
    kinds.push_back(calls.Frame([](Client& c) { c.send_status(); }));
    kinds.push_back(calls.Frame([&](Client& c) { c.send_compose(fields); }));
    kinds.push_back(calls.Frame([&](Client& c) { c.send_lease(ask); }));
    kinds.push_back(calls.Frame([&](Client& c) { c.send_renewLease(renewal); }));
    kinds.push_back(calls.Frame([&](Client& c) { c.send_releaseLease(end); }));
  }
  return kinds;
}

}  // namespace firn::front
