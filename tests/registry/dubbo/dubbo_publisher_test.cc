#include "registry/dubbo/dubbo_publisher.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/url_encoding.h"
#include "registry/dubbo/dubbo_consumers.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

const DubboInterface kInterface{"io.firn.IdService", "nextId,nextIds"};

class DubboPublisherTest : public testing::Test {
 protected:
  DubboPublisherTest() {
    server_.OnSession([](SessionEvent) {});
    other_.OnSession([](SessionEvent) {});
    other_.Dispatch(Milliseconds(0));
    Create("/", Lifetime::kPersistent);
  }

  void Pass(Milliseconds d = Milliseconds(5'000)) {
    const BootMs until = clock_.Boot() + d;
    do {
      clock_.Advance(Milliseconds(50));
      if (publisher_ != nullptr) publisher_->Tick(clock_.Boot());
      while (server_.Dispatch(Milliseconds(0)) + other_.Dispatch(Milliseconds(0)) > 0) {
      }
    } while (clock_.Boot() < until);
  }
  void Create(const std::string& path, Lifetime lifetime) {
    other_.Multi({Write::Create(path, "", lifetime)},
                 [](const WriteOutcome& outcome) { EXPECT_TRUE(outcome.status.ok()); });
    while (other_.Dispatch(Milliseconds(0)) > 0) {
    }
  }
  std::vector<std::string> Listed() {
    std::vector<std::string> names;
    other_.List(kInterface.Folder("providers"),
                [&](const Result<std::vector<std::string>>& all) { names = all.value_or({}); });
    while (other_.Dispatch(Milliseconds(0)) > 0) {
    }
    return names;
  }
  std::vector<std::string> Nodes(int weight) const {
    return {DubboNodeName(provider_, kInterface, weight)};
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  SeededEntropy entropy_{11};
  MemoryTree tree_{clock_};
  MemoryCoordinator server_{tree_};
  MemoryCoordinator other_{tree_};
  const DubboProvider provider_{
      .address = "10.0.0.7:7609", .since = WallMs(1'700'000'000'000), .pid = 42};
  std::unique_ptr<DubboPublisher> publisher_ = std::make_unique<DubboPublisher>(
      server_, entropy_, provider_, std::vector<DubboInterface>{kInterface});
};

TEST_F(DubboPublisherTest, NamesNodeAsJavaDoes) {
  EXPECT_EQ(DubboNodeName(provider_, kInterface, 100),
            "dubbo%3A%2F%2F10.0.0.7%3A7609%2Fio.firn.IdService%3Fapplication%3Dfirn%26deprecated%3D"
            "false%26dubbo%3D2.0.2%26dynamic%3Dtrue%26interface%3Dio.firn.IdService%26methods%3D"
            "nextId%2CnextIds%26pid%3D42%26prefer.serialization%3Dhessian2%26serialization%3D"
            "hessian2%26side%3Dprovider%26timestamp%3D1700000000000%26warmup%3D0%26weight%3D100");
  EXPECT_EQ(AddressOfDubboNode(Nodes(100)[0]), "10.0.0.7:7609");
  EXPECT_EQ(AddressOfDubboNode("consumer%3A%2F%2F10.0.0.7%2Fx"), std::nullopt);
  EXPECT_EQ(AddressOfDubboNode("%"), std::nullopt);
}

TEST_F(DubboPublisherTest, RegistersWhileWantedOnly) {
  Pass();
  EXPECT_FALSE(tree_.Peek("/dubbo")) << "a server that is not ready writes nothing";
  publisher_->Want(100);
  Pass();
  EXPECT_EQ(Listed(), Nodes(100));
  EXPECT_TRUE(publisher_->announced());
  for (const char* folder : {"providers", "consumers", "configurators", "routers"}) {
    EXPECT_TRUE(tree_.Peek(kInterface.Folder(folder))) << folder;
  }
  publisher_->Want(std::nullopt);
  Pass(Milliseconds(100));
  EXPECT_EQ(Listed(), std::vector<std::string>());
  EXPECT_FALSE(publisher_->announced());
  EXPECT_FALSE(publisher_->registered());
}

// A consumer that reads the tree once the metric shows the registration finds the server.
TEST_F(DubboPublisherTest, IsRegisteredOnceItsNodesExist) {
  Pass();  // it lists the folders before it is ready, and finds none
  publisher_->Want(100);
  for (int steps = 0; !publisher_->registered() && steps < 100; ++steps) Pass(Milliseconds(50));
  EXPECT_TRUE(publisher_->registered());
  EXPECT_EQ(Listed(), Nodes(100));
  tree_.Expire(server_.session());
  EXPECT_EQ(Listed(), std::vector<std::string>());
  Pass(Milliseconds(50));
  Pass(Milliseconds(50));
  EXPECT_EQ(publisher_->registered(), Listed() == Nodes(100));
}

TEST_F(DubboPublisherTest, ReplacesNodeForAnotherWeight) {
  publisher_->Want(100);
  Pass();
  publisher_->Want(20);
  Pass(Milliseconds(100));
  EXPECT_EQ(Listed(), Nodes(20));
}

TEST_F(DubboPublisherTest, CreatesNodeAgainAfterItsSessionExpired) {
  publisher_->Want(100);
  Pass();
  tree_.Expire(server_.session());
  EXPECT_EQ(Listed(), std::vector<std::string>());
  Pass();
  EXPECT_EQ(Listed(), Nodes(100));
}

TEST_F(DubboPublisherTest, CreatesNodeAgainThatWasDeletedByHand) {
  publisher_->Want(100);
  Pass();
  other_.Multi({Write::Erase(kInterface.Folder("providers") + "/" + Nodes(100)[0], -1)},
               [](const WriteOutcome&) {});
  Pass(DubboPublisher::kRecheckInterval + Milliseconds(1'000));
  EXPECT_EQ(Listed(), Nodes(100));
}

TEST_F(DubboPublisherTest, DeletesNodesOfEarlierProcessAtItsAddress) {
  publisher_->Want(100);
  Pass();
  publisher_->Want(std::nullopt);
  Pass();
  DubboProvider earlier = provider_, neighbour = provider_;
  earlier.pid = 7;
  neighbour.address = "10.0.0.8:7609";
  const std::string folder = kInterface.Folder("providers") + "/";
  Create(folder + DubboNodeName(earlier, kInterface, 100), Lifetime::kEphemeral);
  Create(folder + DubboNodeName(neighbour, kInterface, 100), Lifetime::kEphemeral);
  publisher_ = std::make_unique<DubboPublisher>(server_, entropy_, provider_,
                                                std::vector<DubboInterface>{kInterface});
  publisher_->Want(100);
  Pass();
  EXPECT_EQ(Listed(),
            (std::vector<std::string>{Nodes(100)[0], DubboNodeName(neighbour, kInterface, 100)}));
}

TEST(DubboConsumerTest, ReadsNodeOfConsumer) {
  const auto read = ParseDubboConsumer(
      "io.firn.IdService",
      UrlEncode("consumer://10.1.2.3/io.firn.IdService?application=shop&pid=77&release=3.3.2"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, (DubboConsumer{"io.firn.IdService", "10.1.2.3", "shop", "77", "3.3.2"}));
}

TEST(DubboConsumerTest, RefusesOtherNamesAndEscapesControls) {
  EXPECT_FALSE(ParseDubboConsumer("x", "%").ok());
  EXPECT_FALSE(ParseDubboConsumer("x", UrlEncode("dubbo://10.1.2.3/x")).ok());
  const auto read = ParseDubboConsumer("x", UrlEncode("consumer://h\x1b[2J/x?application=a\nb"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->host, "h\\x1b[2J");
  EXPECT_EQ(read->application, "a\\x0ab");
}

}  // namespace
}  // namespace firn
