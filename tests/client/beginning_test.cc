// A client in a process that has nothing left to give it.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "client/client.h"

namespace firn {
namespace {

TEST(BeginningTest, AClientWithoutDescriptorsSaysSo) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  Client client({.servers = "list://127.0.0.1:1"});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(client.status().code(), Code::kUnavailable);
  EXPECT_EQ(client.GetId("order").status(), client.status());
  EXPECT_EQ(client.GetIdLater("order").get().status(), client.status());
  EXPECT_EQ(client.counters().attempts, 0u);
}

}  // namespace
}  // namespace firn
