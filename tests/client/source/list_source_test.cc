#include "client/source/list_source.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

Result<ServerList> ListFrom(const std::string& servers) {
  FIRN_ASSIGN(const auto source, OpenListSource(servers));
  ServerList told;
  FIRN_TRY(source->Start([&told](const ServerList& list) { told = list; }));
  source->Stop();
  return told;
}

TEST(ListSourceTest, ReportsItsListOnce) {
  const auto list = ListFrom("list://10.0.0.7:7609,shop-2.example:7609,[2001:db8::7]:7609");
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->servers.size(), 3u);
  EXPECT_EQ(list->servers[0], KnownServer{.address = "10.0.0.7:7609"});
  EXPECT_EQ(list->servers[1].address, "shop-2.example:7609");
  EXPECT_EQ(list->servers[2].address, "[2001:db8::7]:7609");
  EXPECT_TRUE(list->fixed);
  EXPECT_EQ(list->cluster, ClusterIdentity());
}

TEST(ListSourceTest, AcceptsUnixSocketsBesidePorts) {
  const auto list = ListFrom("list://unix:/run/firn/a.sock,10.0.0.8:7609");
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->servers.size(), 2u);
  EXPECT_EQ(list->servers[0].address, "unix:/run/firn/a.sock");
  EXPECT_EQ(list->servers[1].address, "10.0.0.8:7609");
}

TEST(ListSourceTest, RefusesOtherTexts) {
  for (const char* text : {"", "10.0.0.7:7609", "zk://h/firn/shop", "list://", "list://a:1,",
                           "list://a", "list://a:0", "list://a:1,a:1", "list://a:70000",
                           "list://unix:", "list://unix:a.sock", "list://unix:/a,unix:/a"}) {
    EXPECT_EQ(ListFrom(text).code(), Code::kInvalid) << text;
  }
}

TEST(ListSourceTest, NamesTheLibraryAndTheOptionForARegistry) {
  for (const char* text : {"zk://h/firn/shop", "dir:///var/lib/firn"}) {
    const std::string message = ListFrom(text).status().message();
    for (const char* part : {text, "firn::client_registry", "client/source/registry_source.h",
                             "ClientOptions::open_source", "firn::RegistrySources()"}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
}

TEST(ListSourceTest, NamesEveryFaultAtOnce) {
  const std::string text = ListFrom("list://a,b:0,c:1").status().message();
  EXPECT_NE(text.find("'a'"), std::string::npos) << text;
  EXPECT_NE(text.find("'b:0'"), std::string::npos) << text;
}

}  // namespace
}  // namespace firn
