#include "client/source/list_gate.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/client/source/list_recorder.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

class ListGateTest : public testing::Test {
 protected:
  static ServerList ListOf(std::vector<std::string> addresses) {
    ServerList list{.servers = {}, .cluster = {.uuid = "u", .name = {}, .layout = "firn"}};
    for (std::string& address : addresses) list.servers.push_back({.address = std::move(address)});
    return list;
  }
  std::unique_ptr<ListGate> Gate() {
    return std::make_unique<ListGate>(ListCache(path_, "zk://zk/firn/shop"), recorder_.Hook());
  }
  void KeepFromBefore(const ServerList& list) {
    ASSERT_TRUE(ListCache(path_, "zk://zk/firn/shop").Write(list).ok());
  }

  TempDir folder_;
  const std::string path_ = folder_ / "servers";
  ListRecorder recorder_;
};

TEST_F(ListGateTest, ReportsOnlyListsThatDiffer) {
  const auto gate = Gate();
  gate->Open(recorder_.Listener());
  EXPECT_EQ(recorder_.count(), 0u);
  for (int i = 0; i < 3; ++i) gate->Offer(ListOf({"a:1", "b:1"}));
  EXPECT_EQ(recorder_.count(), 1u);
  gate->Offer(ListOf({"a:1"}));
  EXPECT_EQ(recorder_.count(), 2u);
  EXPECT_EQ(recorder_.notes(), "");
}

TEST_F(ListGateTest, IgnoresAnEmptyListAndNotesItOnce) {
  const auto gate = Gate();
  gate->Open(recorder_.Listener());
  gate->Offer(ListOf({}));
  EXPECT_NE(recorder_.notes().find("no servers yet"), std::string::npos);
  gate->Offer(ListOf({"a:1"}));
  for (int i = 0; i < 3; ++i) gate->Offer(ListOf({}));
  EXPECT_EQ(recorder_.last(), ListOf({"a:1"}));
  const std::string kept = "lists no servers now";
  EXPECT_EQ(recorder_.notes().find(kept), recorder_.notes().rfind(kept));
  EXPECT_EQ(ListCache(path_, "zk://zk/firn/shop").Read()->servers.size(), 1u);
  gate->Offer(ListOf({"a:1"}));
  EXPECT_EQ(recorder_.count(), 1u);
}

TEST_F(ListGateTest, ReportsTheCachedListAndThenTheRegistrys) {
  KeepFromBefore(ListOf({"a:1", "b:1"}));
  const auto gate = Gate();
  gate->Open(recorder_.Listener());
  ASSERT_EQ(recorder_.count(), 1u);
  EXPECT_TRUE(recorder_.last().from_cache);
  gate->Offer(ListOf({}));
  EXPECT_EQ(recorder_.count(), 1u);
  gate->Offer(ListOf({"a:1", "b:1"}));  // an equal list, but from the registry
  ASSERT_EQ(recorder_.count(), 2u);
  EXPECT_FALSE(recorder_.last().from_cache);
}

TEST_F(ListGateTest, IgnoresAndReplacesATornFile) {
  KeepFromBefore(ListOf({"a:1", "b:1"}));
  std::ofstream(path_, std::ios::in | std::ios::out).write("FIRN", 4);
  const auto gate = Gate();
  gate->Open(recorder_.Listener());
  EXPECT_EQ(recorder_.count(), 0u);
  EXPECT_NE(recorder_.notes().find("the kept list is not used"), std::string::npos);
  gate->Offer(ListOf({"c:1"}));
  EXPECT_TRUE(ListCache(path_, "zk://zk/firn/shop").Read().ok());
}

TEST_F(ListGateTest, ReportsListsIfTheFileCannotBeWritten) {
  ListGate gate(ListCache(folder_ / "nowhere/servers", "r"), recorder_.Hook());
  gate.Open(recorder_.Listener());
  gate.Offer(ListOf({"a:1"}));
  EXPECT_EQ(recorder_.count(), 1u);
  EXPECT_NE(recorder_.notes().find("could not be kept"), std::string::npos);
}

TEST_F(ListGateTest, ReportsNothingAfterClose) {
  const auto gate = Gate();
  gate->Offer(ListOf({"a:1"}));
  gate->Open(recorder_.Listener());
  gate->Close();
  gate->Offer(ListOf({"b:1"}));
  EXPECT_EQ(recorder_.count(), 0u);
}

}  // namespace
}  // namespace firn
