// Tests a client in a process without free descriptors.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/client/client_rig.h"

namespace firn {
namespace {

// Prevents the process from opening a descriptor while the object exists.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = 3, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(BeginningTest, ReportsThatItHasNoDescriptors) {
  std::optional<NoDescriptors> none(std::in_place);
  Client client({.servers = "list://127.0.0.1:1"});
  none.reset();
  EXPECT_EQ(client.status().code(), Code::kUnavailable);
  EXPECT_EQ(client.GetId("order").status(), client.status());
  EXPECT_EQ(client.GetIdLater("order").get().status(), client.status());
  EXPECT_EQ(client.counters().attempts, 0u);
}

TEST(DescriptorsTest, DoesNotBlameServersForMissingDescriptors) {
  ClientRig rig(2);
  ASSERT_TRUE(rig.GetId().ok());
  {
    const NoDescriptors none;
    for (FakeServer* server : rig.servers()) server->CloseConnections();
    const auto lacked = [&rig] { return rig.client().counters().own_faults; };
    EXPECT_TRUE(Eventually(Milliseconds(60'000), [&] {
      return !rig.GetId({.deadline = Milliseconds(200)}).ok() && lacked() >= 20;
    }));
  }
  EXPECT_EQ(rig.client().counters().ejections, 0u);
  for (FakeServer* server : rig.servers()) {
    EXPECT_EQ(rig.View(*server).health, ServerHealth::kHealthy);
  }
  EXPECT_TRUE(rig.GetId().ok());
}

}  // namespace
}  // namespace firn
