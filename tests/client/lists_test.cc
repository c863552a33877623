// Tests servers that a source's lists add and remove, and invalid options.

#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "tests/client/client_rig.h"
#include "tests/client/told_source.h"
#include "tests/support/process.h"

namespace firn {
namespace {

TEST(ListTest, CallsWaitForTheFirstServerInEveryForm) {
  for (const CallForm form : {CallForm::kBlocking, CallForm::kAsync}) {
    ServerSource::Listener tell;
    ClientRig rig(1, form);
    rig.options.servers = "told";
    rig.options.open_source = ToldSource::Opener(tell);
    rig.client();
    std::jthread later([&] {
      EXPECT_TRUE(Eventually(kPatience, [&] { return rig.client().counters().calls > 0; }));
      tell({.servers = {{.address = rig.server(0).address()}}});
    });
    const Result<int64_t> id = rig.GetId();
    EXPECT_TRUE(id.ok()) << id.status();
    later.join();
    rig.DropClient();
  }
}

TEST(ListTest, CallsWaitForANewerListIfAllKnownServersAreDead) {
  for (const CallForm form : {CallForm::kBlocking, CallForm::kAsync}) {
    ServerSource::Listener tell;
    ClientRig rig(2, form);
    rig.server(0).Down();
    rig.options.servers = "told";
    rig.options.open_source = ToldSource::Opener(tell);
    rig.client();
    ServerList list{.servers = {{.address = rig.server(0).address()}}};
    tell(list);
    std::jthread later([&] {
      EXPECT_TRUE(
          Eventually(kPatience, [&] { return rig.client().counters().connects_failed > 0; }));
      list.servers.push_back({.address = rig.server(1).address()});
      tell(list);
    });
    const Result<int64_t> id = rig.GetId();
    EXPECT_TRUE(id.ok()) << id.status();
    later.join();
    rig.DropClient();
  }
}

TEST(ListTest, ClosesConnectionsToRemovedServersAfterTheirCalls) {
  for (const CallForm form : {CallForm::kBlocking, CallForm::kAsync}) {
    ServerSource::Listener tell;
    ClientRig rig(2, form);
    rig.options.servers = "told";
    rig.options.open_source = ToldSource::Opener(tell);
    rig.client();
    FakeServer& leaves = rig.server(0);
    tell({.servers = {{.address = leaves.address()}}});
    EXPECT_TRUE(rig.GetId().ok());
    leaves.Behave(Behaviour{.delay = Milliseconds(300)});
    auto call = std::async(std::launch::async, [&rig] { return rig.GetId(); });
    EXPECT_TRUE(Eventually(kPatience, [&] { return leaves.requests() == 2; }));
    tell({.servers = {{.address = rig.server(1).address()}}});
    const Result<int64_t> id = call.get();
    EXPECT_TRUE(id.ok()) << id.status();
    EXPECT_EQ(rig.report.attempts.size(), 1u) << "a call is not torn from a server that leaves";
    EXPECT_TRUE(Eventually(kPatience, [&] { return leaves.open_connections() == 0; }));
    EXPECT_TRUE(rig.GetId().ok());
    tell({});
    EXPECT_TRUE(Eventually(kPatience, [&] { return rig.server(1).open_connections() == 0; }));
    rig.DropClient();
  }
}

TEST(ListTest, ReportsAtTheDeadlineThatThereIsNoProvider) {
  ServerSource::Listener tell;
  ClientRig rig(1);
  rig.options.open_source = ToldSource::Opener(tell);
  rig.options.deadline = Milliseconds(100);
  EXPECT_EQ(rig.GetId().status(), Unavailable("no provider: no list of servers was received yet"));
  tell({});
  EXPECT_EQ(rig.GetId().status(), Unavailable("no provider: no server is known"));
  EXPECT_TRUE(rig.SawEvent(ClientEvent::Kind::kNoServer));
}

TEST(ListTest, LooksUpNames) {
  ClientRig rig(1);
  const std::string address = rig.server(0).address();
  rig.options.servers = "list://localhost" + address.substr(address.find(':'));
  EXPECT_TRUE(rig.GetId().ok());
}

TEST(OptionsTest, EveryCallReportsAllFaults) {
  Client client({.servers = "list://10.0.0.7:7609", .attempts_max = 0, .connections = 0});
  const Status status = client.status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("attempts_max"), std::string::npos);
  EXPECT_NE(status.message().find("connections is 0"), std::string::npos);
  EXPECT_EQ(client.GetId("order").status(), status);
  EXPECT_EQ(client.GetIdLater("order").get().status(), status);
}

TEST(OptionsTest, AcceptDeadlinesOfAnyLength) {
  for (const CallForm form : {CallForm::kBlocking, CallForm::kAsync}) {
    ClientRig rig(1, form);
    for (const Milliseconds deadline : {Milliseconds::max(), Milliseconds(INT64_MAX / 1000)}) {
      const Result<int64_t> id = rig.GetId({.deadline = deadline});
      EXPECT_TRUE(id.ok()) << id.status();
    }
    static_cast<void>(rig.GetId({.deadline = Milliseconds::min()}));  // must return
  }
}

TEST(OptionsTest, RefuseSourcesWithoutAnOpener) {
  Client client({.servers = "zk://h1/firn/shop"});
  EXPECT_EQ(client.status().code(), Code::kInvalid);
}

TEST(ProbesTest, LeaveNoConnectionsOfTheirOwn) {
  ClientRig rig(2);
  rig.options.connections = 1;
  rig.options.servers_max = 0;
  rig.server(0).Behave(
      {.kind = Behaviour::Kind::kRefuse, .reason = Reason::kDraining, .only_tag = "order"});
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return rig.GetId().ok() && rig.client().counters().probes > 0 &&
           rig.View(rig.server(0)).health == ServerHealth::kHealthy;
  }));
  EXPECT_TRUE(Eventually(kPatience, [&] { return rig.server(0).open_connections() == 1; }));
}

}  // namespace
}  // namespace firn
