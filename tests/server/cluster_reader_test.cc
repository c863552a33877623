#include "server/cluster_reader.h"

#include <atomic>
#include <cerrno>
#include <functional>
#include <system_error>

#include <gtest/gtest.h>

#include "common/id/layout.h"
#include "common/json/json.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_store.h"
#include "registry/servers/pace.h"
#include "registry/servers/provider.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr Milliseconds kNever{3'600'000};

// A cluster in a real directory, and a ClusterReader that reads it.
class ClusterReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    auto coordinator = OpenCoordinator(place_, {}, SystemClock(), SystemEntropy());
    ASSERT_TRUE(coordinator.ok()) << coordinator.status();
    coordinator_ = *std::move(coordinator);
    registry_ = std::make_unique<BlockingCoordinator>(*coordinator_, SystemClock());
    ASSERT_TRUE(registry_->Connect(kPatience).ok());
    ASSERT_TRUE(MakeCluster(*registry_, {.workers = 4}, SystemEntropy()).ok());
    MakeTag("order");
  }
  void MakeTag(const std::string& name) {
    TagDefinition tag;
    tag.name = name;
    tag.strategy = "segment";
    tag.start = 7;
    ASSERT_TRUE(TagStore(*registry_).Create(tag).ok());
  }
  void ReadWith(ClusterReader::Limits limits, const Clock& clock = SystemClock()) {
    reader_.emplace(ClusterReader::Place{place_, ""}, limits, clock, SystemEntropy(),
                    [this](const auto& text, const auto& options, const auto&,
                           auto& entropy) -> Result<std::unique_ptr<Coordinator>> {
                      ++opened_;
                      on_open_();
                      if (away_) return Unavailable("the registry is away");
                      if (no_threads_) throw std::system_error(EAGAIN, std::generic_category());
                      return OpenCoordinator(text, options, SystemClock(), entropy);
                    });
  }
  // Repeats a question until it is answered.
  template <typename Ask>
  front::ClusterReading Answer(Ask ask) {
    front::ClusterReading word;
    EXPECT_TRUE(Eventually(kPatience, [&] {
      word = ask();
      return word.json != nullptr || !word.trouble.ok();
    }));
    return word;
  }
  Json Audit() {
    const auto word = Answer([&] { return reader_->Audit(); });
    return word.json == nullptr ? Json::object() : JsonOf(*word.json);
  }
  Json Tags() {
    const auto word = Answer([&] { return reader_->Tags(); });
    return word.json == nullptr ? Json::object() : JsonOf(*word.json).at("tags");
  }

  TempDir folder_;
  std::string place_ = "dir://" + (folder_ / "registry");
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<BlockingCoordinator> registry_;
  std::atomic<int> opened_{0};
  std::atomic<bool> away_{false}, no_threads_{false};
  std::function<void()> on_open_ = [] {};
  VirtualClock clock_{At("2026-11-26T12:00:00Z")};
  std::optional<ClusterReader> reader_;  // ends before the members that it uses
};

TEST_F(ClusterReaderTest, ReturnsTheClusterAndItsTags) {
  ReadWith({});
  EXPECT_EQ(reader_->Audit().json, nullptr) << "the call must not wait for the registry";
  const Json audit = Audit();
  EXPECT_EQ(audit.at("faults"), Json::array());
  EXPECT_EQ(audit.at("slots"), 16);
  const Json tags = Tags();
  ASSERT_EQ(tags.size(), 2U) << "the default one, and order";
  EXPECT_EQ(tags.at(1).at("tag"), "order");
  EXPECT_EQ(tags.at(1).at("strategy"), "segment");
  EXPECT_EQ(tags.at(1).at("step"), "1000");
  EXPECT_EQ(tags.at(1).at("state"), "enabled");
  EXPECT_EQ(tags.at(1).at("next"), "7");
}

TEST_F(ClusterReaderTest, ReturnsTheNextNumberOfADatedTag) {
  ASSERT_TRUE(TagStore(*registry_).Create({.name = "bill", .strategy = "dated"}).ok());
  ReadWith({});
  const Json tags = Tags();
  ASSERT_EQ(tags.size(), 3U);
  EXPECT_EQ(tags.at(0).at("tag"), "bill");
  EXPECT_EQ(tags.at(0).at("next"), "1");
}

TEST_F(ClusterReaderTest, OpensNoSessionBeforeTheFirstRequest) {
  ReadWith({});
  reader_->Stop();
  EXPECT_EQ(opened_, 0);
  EXPECT_EQ(reader_->Audit().json, nullptr) << "it must not run after Stop";
}

TEST_F(ClusterReaderTest, ReadsOnlyAsOftenAsPermitted) {
  ReadWith({.read_every = kNever});
  ASSERT_EQ(Tags().size(), 2U);
  MakeTag("user");
  // Later questions are answered later, so a read would have been due before the last one.
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(Tags().size(), 2U);
    Answer([&] { return reader_->Who(int64_t{i} << 22); });
  }
  EXPECT_EQ(opened_, 1) << "one session serves all reads";
}

TEST_F(ClusterReaderTest, ReadsAgainWhileRequestsContinue) {
  ReadWith({.read_every = Milliseconds(0)});
  ASSERT_EQ(Tags().size(), 2U);
  MakeTag("user");
  EXPECT_TRUE(Eventually(kPatience, [&] { return Tags().size() == 3; }));
}

TEST_F(ClusterReaderTest, LimitsThePauseAfterASlowRead) {
  on_open_ = [this] { clock_.Advance(Milliseconds(60'000)); };
  ReadWith({.idle = kNever}, clock_);
  ASSERT_EQ(Tags().size(), 2U);
  MakeTag("user");
  clock_.Advance(Milliseconds(9'999));
  ASSERT_EQ(Tags().size(), 2U);
  ASSERT_NE(Answer([&] { return reader_->Who(1 << 22); }).json, nullptr);
  EXPECT_EQ(Tags().size(), 2U);
  clock_.Advance(kMs);
  EXPECT_TRUE(Eventually(kPatience, [&] { return Tags().size() == 3; }));
}

TEST_F(ClusterReaderTest, ClosesItsSessionWithoutRequests) {
  ReadWith({.read_every = Milliseconds(0), .idle = Milliseconds(0)});
  Audit();
  EXPECT_TRUE(Eventually(kPatience, [&] {
    Audit();
    return opened_ > 1;
  }));
}

TEST_F(ClusterReaderTest, RequestsServersActivityOnlyWhileItIsRead) {
  ReadWith({.read_every = Milliseconds(0)});
  EXPECT_FALSE(Audit().contains("paces_wanted_ms")) << "there is no server to ask";
  Write folder = Write::Create(std::string(kServicePath), "", Lifetime::kPersistent);
  ASSERT_TRUE(registry_->Multi({folder}).status.ok());
  EXPECT_TRUE(Eventually(kPatience, [&] { return Audit().contains("paces_wanted_ms"); }));
  const std::string sign(kPacesWantedPath);
  EXPECT_TRUE(registry_->Read(sign).ok());
  reader_->Stop();
  EXPECT_TRUE(
      Eventually(kPatience, [&] { return registry_->Read(sign).code() == Code::kNotFound; }));
}

TEST_F(ClusterReaderTest, KeepsItsLastReadingWhileTheRegistryIsUnreachable) {
  ReadWith({.read_every = Milliseconds(0), .idle = Milliseconds(0)});
  Audit();
  away_ = true;
  EXPECT_TRUE(Eventually(kPatience, [&] { return !reader_->Audit().trouble.ok(); }));
  EXPECT_EQ(reader_->Audit().trouble.message(), "the registry is away");
  EXPECT_NE(reader_->Audit().json, nullptr);
  away_ = false;
  EXPECT_TRUE(Eventually(kPatience, [&] { return reader_->Audit().trouble.ok(); }));
}

TEST_F(ClusterReaderTest, ReportsAHostThatRefusesItThreads) {
  no_threads_ = true;
  ReadWith({});
  const auto word = Answer([&] { return reader_->Audit(); });
  EXPECT_EQ(word.trouble.code(), Code::kUnavailable) << word.trouble;
  no_threads_ = false;
  EXPECT_TRUE(Eventually(kPatience, [&] { return reader_->Audit().json != nullptr; }));
}

TEST_F(ClusterReaderTest, ReportsHowLongItWaitedForAnUnreachableRegistry) {
  place_ = "zk://127.0.0.1:1/firn/missing";
  ReadWith({.patience = Milliseconds(250)});
  const auto word = Answer([&] { return reader_->Audit(); });
  EXPECT_EQ(word.trouble.message(), "no connection to the registry within 250 ms");
}

TEST_F(ClusterReaderTest, ReturnsTheIssuerOfAnId) {
  ReadWith({});
  const auto nobody = Answer([&] { return reader_->Who(4'194'304); });
  ASSERT_NE(nobody.json, nullptr) << nobody.trouble.message();
  EXPECT_EQ(JsonOf(*nobody.json).at("known"), false);
  const auto none = Answer([&] { return reader_->Who(-1); });
  EXPECT_EQ(none.trouble.code(), Code::kInvalid) << none.trouble.message();
}

TEST_F(ClusterReaderTest, RefusesRequestsBeyondItsLimit) {
  ReadWith({.question_every = kNever, .questions_max = 2});
  ASSERT_NE(Answer([&] { return reader_->Who(1 << 22); }).json, nullptr);
  EXPECT_TRUE(reader_->Who(2 << 22).trouble.ok());
  EXPECT_TRUE(reader_->Who(3 << 22).trouble.ok());
  EXPECT_TRUE(reader_->Who(3 << 22).trouble.ok()) << "this question is already queued";
  EXPECT_EQ(reader_->Who(4 << 22).trouble.code(), Code::kUnavailable);
}

TEST_F(ClusterReaderTest, FindsNoConsumersWithoutZooKeeper) {
  ReadWith({});
  const auto word = Answer([&] { return reader_->Consumers(); });
  ASSERT_NE(word.json, nullptr) << word.trouble.message();
  EXPECT_EQ(JsonOf(*word.json).at("consumers"), Json::array());
  EXPECT_EQ(opened_, 0) << "Dubbo's consumers register in ZooKeeper only";
}

TEST_F(ClusterReaderTest, ReportsThatAStaticServerHasNoRegistry) {
  ClusterReader alone({.registry = "static:7", .credentials = ""}, {}, SystemClock(),
                      SystemEntropy());
  EXPECT_EQ(alone.Audit().trouble.code(), Code::kUnavailable);
  EXPECT_EQ(alone.Consumers().trouble.code(), Code::kUnavailable);
  EXPECT_EQ(alone.Who(1).trouble.code(), Code::kUnavailable);
}

}  // namespace
}  // namespace firn
