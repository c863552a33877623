#include "registry/open/open_coordinator.h"

#include <string>

#include <gtest/gtest.h>

namespace firn {
namespace {

TEST(OpenCoordinatorTest, HostsWithoutAPortGetZooKeepersDefault) {
  const Result<ZkOptions> zk = ParseZkPlace("a,b:2182,[::1]:9,[fe80::1]/firn/main");
  ASSERT_TRUE(zk.ok()) << zk.status();
  EXPECT_EQ(zk->hosts, "a:2181,b:2182,[::1]:9,[fe80::1]:2181");
  EXPECT_EQ(zk->root, "/firn/main");
}

TEST(OpenCoordinatorTest, RefusesAnInvalidRegistryWithASentence) {
  const struct {
    const char* text;
    const char* because;
  } table[] = {
      {"", "not a registry"},
      {"zookeeper:2181", "not a registry"},
      {"zk://", "names no cluster"},
      {"zk://a:2181", "names no cluster"},
      {"zk://a:2181/", "names no cluster"},
      {"zk:///firn/x", "empty"},
      {"zk://a,,b/firn", "empty"},
      {"zk://a:0/firn", "not a port"},
      {"zk://a:65536/firn", "not a port"},
      {"zk://a:port/firn", "not a port"},
      {"zk://user@a:1/firn", "character"},
      {"zk://a:1/firn/", "empty part"},
      {"zk://a:1/firn/../x", "relative"},
      {"dir://", "absolute"},
      {"dir:///", "absolute"},
      {"dir://var/lib", "absolute"},
      {"dir:///var?what", "absolute"},
  };
  for (const auto& row : table) {
    const auto opened = OpenCoordinator(row.text, {}, SystemClock(), SystemEntropy());
    EXPECT_EQ(opened.code(), Code::kInvalid) << row.text;
    EXPECT_NE(opened.status().message().find(row.because), std::string::npos)
        << row.text << ": " << opened.status();
  }
}

TEST(OpenCoordinatorTest, AdoptsADirectoryOnlyOnRequest) {
  EXPECT_FALSE(ParseDirPlace("/var/lib/firn")->adopt);
  EXPECT_TRUE(ParseDirPlace("/var/lib/firn?adopt")->adopt);
  EXPECT_EQ(ParseDirPlace("/var/lib/firn?adopt")->path, "/var/lib/firn");
}

TEST(OpenCoordinatorTest, CredentialsAreOneLineAndAreNotShownInErrors) {
  EXPECT_EQ(*ParseCredentials("firn:se:cret\r\nmore"), "firn:se:cret");
  for (const char* bad : {"", "secret", ":secret", "firn:"}) {
    const Result<std::string> parsed = ParseCredentials(bad);
    EXPECT_EQ(parsed.code(), Code::kInvalid);
    EXPECT_EQ(parsed.status().message().find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace firn
