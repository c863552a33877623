#include "client/source/registry_source.h"

#include <gtest/gtest.h>

#include "client/source/list_cache.h"
#include "tests/client/source/announcer.h"
#include "tests/client/source/list_recorder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

using Addresses = std::vector<std::string>;

// A source, and the lists that it reported.
class RegistrySourceTest : public testing::Test {
 protected:
  void Open(const std::string& registry, const std::string& cache_file = "") {
    auto opened = RegistrySources({.cache_file = cache_file,
                                   .session_time = Milliseconds(2000),
                                   .on_event = recorder_.Hook()})(registry);
    ASSERT_TRUE(opened.ok()) << opened.status();
    source_ = *std::move(opened);
    const Status started = source_->Start(recorder_.Listener());
    ASSERT_TRUE(started.ok()) << started;
  }
  void Close() {
    source_->Stop();
    source_.reset();
  }

  TempDir folder_;
  const std::string cache_ = folder_ / "servers";
  ListRecorder recorder_;
  std::unique_ptr<ServerSource> source_;
};

// --- a directory --------------------------------------------------------------------------------

class DirSourceTest : public RegistrySourceTest {
 protected:
  const std::string registry_ = "dir://" + (folder_ / "registry");
  Announcer operator_{registry_};
  const std::string uuid_ = operator_.MakeCluster();
};

TEST_F(DirSourceTest, ReportsServersAndTheirCluster) {
  operator_.Add("10.0.0.8:7609");
  operator_.Add("10.0.0.7:7609");
  Open(registry_);
  ASSERT_TRUE(recorder_.Shows({"10.0.0.7:7609", "10.0.0.8:7609"})) << recorder_.notes();
  EXPECT_EQ(recorder_.last().cluster,
            (ClusterIdentity{.uuid = uuid_, .name = {}, .layout = "firn"}));
  EXPECT_FALSE(recorder_.last().from_cache);
  EXPECT_FALSE(recorder_.last().fixed);
}

TEST_F(DirSourceTest, IgnoresAUnixSocket) {
  operator_.Add("unix:/run/a.sock");
  operator_.Add("10.0.0.7:7609");
  Open(registry_);
  EXPECT_TRUE(recorder_.Shows({"10.0.0.7:7609"})) << recorder_.notes();
}

TEST_F(DirSourceTest, ReportsPhasesAndOperatorsSettings) {
  operator_.Add("10.0.0.7:7609", ServerPhase::kNotReady);
  operator_.Say("10.0.0.7:7609", {.weight = 7, .disabled = true});
  Open(registry_);
  ASSERT_TRUE(recorder_.Shows({"10.0.0.7:7609"}));
  const KnownServer wanted{
      .address = "10.0.0.7:7609", .weight = 7, .disabled = true, .phase = ServerPhase::kNotReady};
  EXPECT_EQ(recorder_.last().servers[0], wanted);
  operator_.Change("10.0.0.7:7609", ServerPhase::kDraining);
  EXPECT_TRUE(Eventually(Milliseconds(60'000), [&] {
    return recorder_.last().servers[0].phase == ServerPhase::kDraining;
  }));
}

TEST_F(DirSourceTest, DistinguishesARestartedServerFromItsPredecessor) {
  operator_.Add("10.0.0.7:7609");
  Open(registry_);
  ASSERT_TRUE(recorder_.Shows({"10.0.0.7:7609"})) << recorder_.notes();
  const KnownServer before = recorder_.last().servers[0];
  operator_.StartAnew("10.0.0.7:7609", 4711);
  EXPECT_TRUE(Eventually(Milliseconds(60'000), [&] {
    return recorder_.last().servers[0].incarnation != before.incarnation;
  })) << recorder_.notes();
  EXPECT_EQ(recorder_.addresses(), Addresses{"10.0.0.7:7609"});
}

TEST_F(DirSourceTest, KeepsTheLastListWhileAllServersAreGone) {
  operator_.Add("10.0.0.7:7609");
  Open(registry_, cache_);
  ASSERT_TRUE(recorder_.Shows({"10.0.0.7:7609"}));
  operator_.Remove("10.0.0.7:7609");
  ASSERT_TRUE(recorder_.Noted("lists no servers now"));
  EXPECT_EQ(recorder_.addresses(), Addresses{"10.0.0.7:7609"});
  operator_.Add("10.0.0.8:7609");
  EXPECT_TRUE(recorder_.Shows({"10.0.0.8:7609"}));
}

TEST_F(DirSourceTest, ReportsNothingAfterStop) {
  Open(registry_);
  Close();
  const size_t before = recorder_.count();
  operator_.Add("10.0.0.7:7609");
  EXPECT_EQ(recorder_.count(), before);
}

TEST_F(RegistrySourceTest, RefusesTextsThatNameNoRegistry) {
  const SourceOpener open = RegistrySources();
  for (const char* text : {"", "http://x", "zk://", "zk://host", "dir://relative", "10.0.0.7:1"}) {
    EXPECT_EQ(open(text).code(), Code::kInvalid) << text;
  }
  EXPECT_TRUE(open("list://10.0.0.7:7609").ok());
}

TEST_F(RegistrySourceTest, DoesNotCreateAMissingDirectory) {
  auto source = RegistrySources()("dir://" + (folder_ / "nowhere"));
  EXPECT_EQ((*source)->Start(recorder_.Listener()).code(), Code::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "nowhere"));
}

// --- ZooKeeper ----------------------------------------------------------------------------------

class ZkSourceTest : public RegistrySourceTest {
 protected:
  void SetUp() override {
    auto started = ZooKeeper::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    zk_ = *std::move(started);
    registry_ = "zk://" + zk_->hosts() + "/firn/shop";
    operator_ = std::make_unique<Announcer>(registry_);
    uuid_ = operator_->MakeCluster();
  }
  void TearDown() override {
    source_.reset();
    operator_.reset();
    if (HasFailure() && zk_ != nullptr) zk_->KeepFiles();
  }

  std::unique_ptr<ZooKeeper> zk_;
  std::string registry_;
  std::unique_ptr<Announcer> operator_;
  std::string uuid_;
};

TEST_F(ZkSourceTest, StartsWithTheCachedListWhileZooKeeperIsDown) {
  operator_->Add("10.0.0.7:7609");
  Open(registry_, cache_);
  ASSERT_TRUE(recorder_.Shows({"10.0.0.7:7609"})) << recorder_.notes();
  ASSERT_TRUE(
      Eventually(Milliseconds(60'000), [&] { return ListCache(cache_, registry_).Read().ok(); }));
  Close();
  operator_.reset();
  zk_->Kill(0);

  const size_t before = recorder_.count();
  Open(registry_, cache_);
  EXPECT_EQ(recorder_.count(), before + 1) << "told inside Start";
  EXPECT_TRUE(recorder_.last().from_cache);
  EXPECT_EQ(recorder_.last().cluster.uuid, uuid_);
  EXPECT_EQ(recorder_.addresses(), Addresses{"10.0.0.7:7609"});

  // Restarts ZooKeeper and the server that had ended with it.
  ASSERT_TRUE(zk_->Restart(0).ok());
  ASSERT_TRUE(zk_->AwaitReady().ok());
  operator_ = std::make_unique<Announcer>(registry_);
  operator_->Add("10.0.0.8:7609");
  EXPECT_TRUE(Eventually(Milliseconds(60'000), [&] {
    return !recorder_.last().from_cache && recorder_.addresses().back() == "10.0.0.8:7609";
  }));
}

TEST_F(ZkSourceTest, KeepsTheListWhenZooKeeperAndAllServersEnd) {
  operator_->Add("10.0.0.7:7609");
  Open(registry_);
  ASSERT_TRUE(recorder_.Shows({"10.0.0.7:7609"})) << recorder_.notes();
  zk_->Kill(0);
  operator_.reset();
  const size_t before = recorder_.count();
  ASSERT_TRUE(zk_->Restart(0).ok());
  ASSERT_TRUE(zk_->AwaitReady().ok());
  // The server's session survives ZooKeeper's restart and then expires.
  EXPECT_TRUE(recorder_.Noted("lists no servers now")) << recorder_.notes();
  EXPECT_EQ(recorder_.count(), before);
  operator_ = std::make_unique<Announcer>(registry_);
  operator_->Add("10.0.0.9:7609");
  EXPECT_TRUE(recorder_.Shows({"10.0.0.9:7609"}));
}

TEST_F(ZkSourceTest, KeepsTheListWhenDataAreLostOrTheSessionExpires) {
  operator_->Add("10.0.0.7:7609");
  Open(registry_);
  ASSERT_TRUE(recorder_.Shows({"10.0.0.7:7609"})) << recorder_.notes();
  const size_t before = recorder_.count();
  zk_->KillAll();
  operator_.reset();
  ASSERT_TRUE(zk_->Wipe().ok());
  ASSERT_TRUE(recorder_.Noted("there is no cluster")) << recorder_.notes();
  EXPECT_EQ(recorder_.count(), before);

  operator_ = std::make_unique<Announcer>(registry_);
  const std::string other = operator_->MakeCluster();
  operator_->Add("10.0.0.7:7609");
  EXPECT_TRUE(
      Eventually(Milliseconds(60'000), [&] { return recorder_.last().cluster.uuid == other; }));
  EXPECT_NE(other, uuid_);
}

}  // namespace
}  // namespace firn
