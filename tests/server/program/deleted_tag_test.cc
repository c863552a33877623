// A tag that never issued is taken away from under a running server, and made again.

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/server/program/running_server.h"
#include "tests/support/database/redis.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

constexpr Milliseconds kPatience{60'000};

class DeletedTagTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto started = Redis::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    redis_ = *std::move(started);
    const std::string stores = dir_ / "stores.ini";
    std::ofstream(stores) << "[cache]\nkind = redis\naddress = " << redis_->address()
                          << "\n[fast]\nkind = tiered\nfront = cache\n";
    server_ = std::make_unique<RunningServer>(
        dir_ / "state",
        std::vector<std::string>{"--registry=" + registry(), "--stores_file=" + stores,
                                 "--issue_wait_ms=30000"});
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  }

  Finished Tags(std::vector<std::string> words) const {
    words.insert(words.begin(), {BuiltProgram("firn"), "tags"});
    words.push_back("--registry=" + registry());
    return RunToEnd(words);
  }
  void Create(const std::string& text) const {
    const Finished made = Tags({"create", "order", "store=" + GetParam(), "text=" + text});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  // Known to the server, which takes no number for that.
  bool StatusNames(const std::string& tag) const {
    return server_->Admin("/v1/status").body.find("\"" + tag + "\"") != std::string::npos;
  }
  bool IsServed() const {
    return Eventually(kPatience, [&] { return StatusNames("order"); });
  }

  std::string registry() const { return "dir://" + (dir_ / "registry"); }

  TempDir dir_;
  std::unique_ptr<Redis> redis_;
  std::unique_ptr<RunningServer> server_;
};

TEST_P(DeletedTagTest, IsUnknownAndIsMadeAgainInAnotherForm) {
  ASSERT_NO_FATAL_FAILURE(Create("A{id}"));
  ASSERT_TRUE(IsServed()) << server_->log();
  const Finished deleted = Tags({"delete", "order"});
  EXPECT_EQ(deleted.exit_code, 0) << deleted.err;
  const auto unknown = [&] { return server_->Get("/v1/ids/order").status == 404; };
  EXPECT_TRUE(Eventually(kPatience, unknown)) << server_->log();
  EXPECT_FALSE(StatusNames("order")) << "a restore would bring it back";

  ASSERT_NO_FATAL_FAILURE(Create("B{id}"));
  ASSERT_TRUE(IsServed()) << server_->log();
  EXPECT_THAT(server_->Get("/v1/ids/order?form=text").body, HasSubstr("\"B1\""));
  EXPECT_THAT(server_->Get("/v1/ids/order?form=text").body, HasSubstr("\"B2\""));

  const Finished used = Tags({"delete", "order"});
  EXPECT_EQ(used.exit_code, 2) << used.out;
  EXPECT_THAT(used.err, HasSubstr("disable it"));
  EXPECT_THAT(server_->Get("/v1/ids/order?form=text").body, HasSubstr("\"B3\""));
}

INSTANTIATE_TEST_SUITE_P(Stores, DeletedTagTest, testing::Values("registry", "cache", "fast"),
                         [](const auto& store) { return store.param; });

}  // namespace
}  // namespace firn
