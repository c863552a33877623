#include "client/source/seed_source.h"

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/client/source/list_recorder.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn::client {
namespace {

using Names = std::vector<std::string>;

// Answers for all servers, as set by the test.
class Answering {
 public:
  void Tell(int64_t version, const Names& names, Milliseconds ask_again = Milliseconds(500)) {
    const std::scoped_lock lock(mutex_);
    told_ = {.version = version, .list = ServerList(), .ask_again = ask_again};
    for (const std::string& name : names) told_->list->servers.push_back({.address = name});
  }
  void TellNothing() {
    const std::scoped_lock lock(mutex_);
    told_.reset();
  }
  int asked() const {
    const std::scoped_lock lock(mutex_);
    return asked_;
  }
  int64_t known() const {
    const std::scoped_lock lock(mutex_);
    return known_;
  }

  AskServers Asker() {
    return [this](int64_t known, const std::function<void(Result<ToldServers>)>& done) {
      std::optional<ToldServers> told;
      {
        const std::scoped_lock lock(mutex_);
        ++asked_;
        known_ = known;
        told = told_;
      }
      if (told && told->version == known) told->list.reset();
      done(told ? Result<ToldServers>(*std::move(told)) : Unavailable("no server answers"));
    };
  }

 private:
  mutable std::mutex mutex_;
  std::optional<ToldServers> told_;
  int asked_ = 0;
  int64_t known_ = -1;
};

class SeedSourceTest : public testing::Test {
 protected:
  void Start(const std::string& servers) {
    auto opened = OpenSeedSource(servers, answering_.Asker(), recorder_.Hook(), SystemEntropy());
    ASSERT_TRUE(opened.ok()) << opened.status();
    source_ = *std::move(opened);
    ASSERT_TRUE(source_->Start(recorder_.Listener()).ok());
  }
  std::string WithCache() const { return "firn://seed:1?cache=" + cache_; }

  TempDir folder_;
  const std::string cache_ = folder_ / "servers";
  Answering answering_;
  ListRecorder recorder_;
  std::unique_ptr<ServerSource> source_;
};

TEST_F(SeedSourceTest, StartsWithItsSeedsAndThenReportsAServersList) {
  answering_.Tell(7, {"a:1", "b:1"});
  Start("firn://seed:1,seed:2");
  EXPECT_TRUE(recorder_.Shows({"a:1", "b:1"}));
  EXPECT_TRUE(Eventually(kPatience, [&] { return answering_.known() == 7; }))
      << "it asks again, and says what it has";
  EXPECT_EQ(recorder_.count(), 2u) << "and gets no newer list";
  answering_.Tell(8, {"b:1"});
  EXPECT_TRUE(recorder_.Shows({"b:1"}));
}

TEST_F(SeedSourceTest, ReportsTheSeedsWhileNoServerAnswers) {
  Start("firn://seed:1");
  EXPECT_TRUE(recorder_.Shows({"seed:1"}));
  EXPECT_TRUE(Eventually(kPatience, [&] { return answering_.asked() >= 2; }));
  answering_.Tell(7, {"a:1"});
  EXPECT_TRUE(recorder_.Shows({"a:1"}));
  answering_.TellNothing();
  EXPECT_TRUE(recorder_.Shows({"a:1", "seed:1"}));
  answering_.Tell(7, {"a:1"});
  EXPECT_TRUE(recorder_.Shows({"a:1"}));
}

TEST_F(SeedSourceTest, AnAnswerMayArriveAfterTheSourcesEnd) {
  std::mutex mutex;
  std::function<void(Result<ToldServers>)> late;
  const AskServers keep = [&](int64_t, std::function<void(Result<ToldServers>)> done) {
    const std::scoped_lock lock(mutex);
    late = std::move(done);
  };
  const auto asked = [&] {
    const std::scoped_lock lock(mutex);
    return late != nullptr;
  };
  auto source = OpenSeedSource("firn://seed:1", keep, recorder_.Hook(), SystemEntropy());
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_TRUE((*source)->Start(recorder_.Listener()).ok());
  ASSERT_TRUE(Eventually(kPatience, asked));
  source->reset();
  late(Unavailable("no server answers"));
}

TEST_F(SeedSourceTest, HurryMakesItAskSoon) {
  answering_.Tell(7, {"a:1"}, Milliseconds(3'600'000));
  Start("firn://seed:1");
  ASSERT_TRUE(recorder_.Shows({"a:1"}));
  answering_.Tell(8, {"b:1"}, Milliseconds(3'600'000));
  EXPECT_EQ(answering_.asked(), 1);
  // Hurry has no effect before the source has set the time of the next request.
  EXPECT_TRUE(Eventually(kPatience, [&] {
    source_->Hurry();
    return recorder_.addresses() == Names{"b:1"};
  }));
}

TEST_F(SeedSourceTest, CachesTheLastReportedListWithoutSeeds) {
  Start(WithCache());
  EXPECT_TRUE(Eventually(kPatience, [&] { return answering_.asked() >= 2; }));
  EXPECT_FALSE(std::filesystem::exists(cache_)) << "no server reported these";
  answering_.Tell(7, {"10.0.0.7:1", "10.0.0.8:1"});
  ASSERT_TRUE(recorder_.Shows({"10.0.0.7:1", "10.0.0.8:1"}));
  EXPECT_TRUE(Eventually(kPatience, [&] { return std::filesystem::exists(cache_); }));
  source_->Stop();
  answering_.TellNothing();

  ListRecorder again;
  auto opened = OpenSeedSource(WithCache(), answering_.Asker(), again.Hook(), SystemEntropy());
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE((*opened)->Start(again.Listener()).ok());
  EXPECT_TRUE(again.Shows({"10.0.0.7:1", "10.0.0.8:1", "seed:1"}))
      << "the seeds are added while no server answers";
  EXPECT_TRUE(again.last().from_cache);
  (*opened)->Stop();
}

TEST_F(SeedSourceTest, StopsDuringARequest) {
  std::function<void(Result<ToldServers>)> late;
  std::mutex mutex;
  auto opened = OpenSeedSource(
      "firn://seed:1",
      [&](int64_t, auto done) {
        const std::scoped_lock lock(mutex);
        late = std::move(done);
      },
      {}, SystemEntropy());
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE((*opened)->Start(recorder_.Listener()).ok());
  EXPECT_TRUE(Eventually(kPatience, [&] {
    const std::scoped_lock lock(mutex);
    return late != nullptr;
  }));
  (*opened)->Stop();
  late(ToldServers{.version = 7, .list = ServerList{.servers = {{.address = "a:1"}}}});
  EXPECT_EQ(recorder_.addresses(), Names{"seed:1"});
}

TEST(SeedSourceTextTest, NamesEveryFault) {
  const struct {
    const char* servers;
    const char* part;
  } table[] = {{"firn://", "servers"},
               {"firn://a", "a"},
               {"firn://a:1,a:1", "given twice"},
               {"firn://a:0", "no port"},
               {"firn://a:1?", "cache="},
               {"firn://a:1?cache=", "cache="},
               {"firn://a:1?other=1", "cache="},
               {"list://a:1", "firn://"}};
  for (const auto& row : table) {
    const auto opened = OpenSeedSource(row.servers, {}, {}, SystemEntropy());
    EXPECT_EQ(opened.code(), Code::kInvalid) << row.servers;
    EXPECT_NE(opened.status().message().find(row.part), std::string::npos) << opened.status();
  }
}

}  // namespace
}  // namespace firn::client
