#include "common/net/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/net/address.h"
#include "common/net/ip_address.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

TEST(EndpointTest, ReadsAndWritesNamesAndAddresses) {
  const std::tuple<std::string_view, std::string_view, int, std::string_view> cases[] = {
      {"127.0.0.1:7609", "127.0.0.1", 7609, "127.0.0.1:7609"},
      {"localhost:0", "localhost", 0, "localhost:0"},
      {"order-1.example_x.org:65535", "order-1.example_x.org", 65535,
       "order-1.example_x.org:65535"},
      {"3com.org:1", "3com.org", 1, "3com.org:1"},
      {"[::1]:7609", "::1", 7609, "[::1]:7609"},
      {"[2001:DB8:0:0::7]:80", "2001:db8::7", 80, "[2001:db8::7]:80"},
  };
  for (const auto& [text, host, port, canonical] : cases) {
    const Result<Endpoint> endpoint = Endpoint::Parse(text);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    EXPECT_EQ(endpoint->host, host);
    EXPECT_EQ(endpoint->port, port);
    EXPECT_EQ(endpoint->ToString(), canonical);
    EXPECT_EQ(*Endpoint::Parse(canonical), *endpoint);
  }
}

TEST(EndpointTest, ReadsTheAddressOfAServer) {
  EXPECT_EQ(*Endpoint::ParseServer("10.0.0.7:7609"), (Endpoint{"10.0.0.7", 7609}));
  const std::string longest = "/" + std::string(kUnixPathMax - 1, 'a');
  for (const std::string& path : {std::string("/run/firn.sock"), longest}) {
    const Result<Endpoint> socket = Endpoint::ParseServer("unix:" + path);
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_TRUE(socket->IsUnix());
    EXPECT_EQ(socket->ToString(), "unix:" + path);
    EXPECT_EQ(NumericAddress(*socket).family(), AF_UNIX);
  }
  const std::pair<std::string, std::string_view> cases[] = {
      {"10.0.0.7:0", "no port to connect to"},  {"unix:", "absolute path"},
      {"unix:firn.sock", "absolute path"},      {"unix:" + longest + "b", "at most 107 bytes"},
      {std::string("unix:/a\0b", 9), "no NUL"},
  };
  for (const auto& [text, fault] : cases) {
    EXPECT_THAT(Endpoint::ParseServer(text).status().message(), HasSubstr(fault));
  }
  EXPECT_FALSE(Endpoint::Parse("unix:/run/firn.sock").ok()) << "not an address to listen on";
}

TEST(EndpointTest, RefusesOtherTexts) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "no port"},
      {"localhost", "no port"},
      {":7609", "the host"},
      {"localhost:", "the port"},
      {"localhost:65536", "the port"},
      {"localhost:-1", "the port"},
      {"localhost:+1", "the port"},
      {"localhost: 1", "the port"},
      {"localhost:1 ", "the port"},
      {"localhost:000001", "the port"},
      {"local host:1", "the host"},
      {"a..b:1", "the host"},
      {"-a:1", "the host"},
      {"a-:1", "the host"},
      {"1.2.3:1", "the host"},
      {"256.1.1.1:1", "the host"},
      {"01.1.1.1:1", "the host"},
      {"0x7f.1:1", "the host"},
      {"::1:7609", "needs brackets"},
      {"[::1:7609", "brackets"},
      {"[]:1", "brackets"},
      {"[:1", "brackets"},
      {"[127.0.0.1]:1", "brackets"},
      {"[::1%eth0]:1", "brackets"},
      {"[::g]:1", "brackets"},
      {std::string_view("a\0b:1", 5), "the host"},
      {"http://a:1", "the host"},
  };
  for (const auto& [text, fault] : cases) {
    const Result<Endpoint> endpoint = Endpoint::Parse(text);
    EXPECT_EQ(endpoint.code(), Code::kInvalid) << text;
    EXPECT_THAT(endpoint.status().message(), HasSubstr(std::string(fault))) << text;
  }
  EXPECT_FALSE(Endpoint::Parse(std::string(64, 'a') + ":1").ok());
  EXPECT_TRUE(Endpoint::Parse(std::string(63, 'a') + ":1").ok());
}

TEST(IpAsNumberTest, WritesAddressesAsOwnersAreNamed) {
  EXPECT_EQ(*IpAsNumber("10.0.0.7"), "167772167");
  EXPECT_EQ(*IpAsNumber("255.255.255.255"), "4294967295");
  EXPECT_EQ(*IpAsNumber("0.0.0.0"), "0");
  EXPECT_EQ(*IpAsNumber("2001:db8::7"), "20010db8000000000000000000000007");
  EXPECT_EQ(*IpAsNumber("::"), "00000000000000000000000000000000");
  for (const char* host : {"", "localhost", "1.2.3", "[::1]", "256.0.0.1"}) {
    EXPECT_EQ(IpAsNumber(host).code(), Code::kInvalid) << host;
  }
}

TEST(IpAddress, RecognisesEverySpelling) {
  for (const char* loopback : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(IsLoopback(loopback)) << loopback;
  }
  for (const char* any : {"0.0.0.0", "::", "::ffff:0.0.0.0", "0:0:0:0:0:0:0:0"}) {
    EXPECT_TRUE(IsAnyAddress(any)) << any;
    EXPECT_FALSE(IsLoopback(any)) << any;
  }
  for (const char* other : {"10.0.0.7", "2001:db8::7", "::ffff:10.0.0.7", "0.0.0.1", "::2"}) {
    EXPECT_TRUE(IsIpAddress(other)) << other;
    EXPECT_FALSE(IsLoopback(other) || IsAnyAddress(other)) << other;
  }
  for (const char* name :
       {"localhost", "", "127.1", "1", "[::1]", "127.0.0.1 ", "0.0.0.0.example"}) {
    EXPECT_FALSE(IsIpAddress(name) || IsLoopback(name) || IsAnyAddress(name)) << name;
  }
}

}  // namespace
}  // namespace firn
