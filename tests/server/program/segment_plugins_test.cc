// Segment tags with plugins and text forms, over Thrift and HTTP.

#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include "client/client.h"
#include "client/local_ranges.h"
#include "common/json/json.h"
#include "server/plugins/key_file.h"
#include "server/plugins/obfuscate.h"
#include "tests/server/program/running_server.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "thrift/gen/IdService.h"

namespace firn {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

class SegmentPluginsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(dir_ / "keys");
    std::ofstream(KeyFile()) << "000102030405060708090a0b0c0d0e0f\n";
    std::filesystem::permissions(KeyFile(), std::filesystem::perms::owner_read);
    server_ = std::make_unique<RunningServer>(
        dir_ / "state",
        std::vector<std::string>{"--registry=" + registry(), "--key_dir=" + (dir_ / "keys"),
                                 "--history_file=" + (dir_ / "history"), "--issue_wait_ms=30000"});
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  }

  // Creates the tag. The server knows it on return, and has issued none of its numbers.
  void Create(const std::string& tag, std::vector<std::string> lines) {
    lines.push_back("--registry=" + registry());
    const Finished made = RunFirn({"tags", "create", tag, "strategy=segment", "step=20"}, lines);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    // A request for 0 ids is always refused with 400 once the tag is known.
    const auto known = [&] { return server_->Get("/v1/ids/" + tag + "?count=0").status == 400; };
    ASSERT_TRUE(Eventually(kPatience, known)) << server_->log();
  }

  Json Rest(const std::string& target) const {
    const auto answer = server_->Get("/v1/ids/" + target);
    EXPECT_EQ(answer.status, 200) << target << ": " << answer.body;
    return JsonOf(answer.body);
  }
  // Returns the cause of a refusal.
  std::string RestRefusal(const std::string& target) const {
    const Json json = JsonOf(server_->Get("/v1/ids/" + target).body);
    return json.contains("error") ? json.at("error").at("reason").text() : "none";
  }
  template <typename Call>
  wire::Reason::type ThriftRefusal(Call call) {
    try {
      call();
    } catch (const wire::Refusal& refusal) {
      return refusal.reason;
    }
    return {};
  }

  wire::IdServiceClient& Thrift() {
    using namespace apache::thrift;  // NOLINT(build/namespaces): three classes of three namespaces
    if (!thrift_) {
      const auto socket = std::make_shared<transport::TSocket>("127.0.0.1", server_->port());
      socket->setRecvTimeout(static_cast<int>(kPatience.count()));
      socket->open();
      thrift_ = std::make_unique<wire::IdServiceClient>(std::make_shared<protocol::TBinaryProtocol>(
          std::make_shared<transport::TFramedTransport>(socket)));
    }
    return *thrift_;
  }

  std::string History() const {
    std::ifstream file(dir_ / "history");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  bool IsRecorded(const std::string& line_part) const {
    return Eventually(kPatience, [&] { return History().find(line_part) != std::string::npos; });
  }

  std::string registry() const { return "dir://" + (dir_ / "registry"); }
  std::string KeyFile() const { return dir_ / "keys/k1.key"; }

  TempDir dir_;
  std::unique_ptr<RunningServer> server_;
  std::unique_ptr<wire::IdServiceClient> thrift_;
};

TEST_F(SegmentPluginsTest, ATextFormShowsTheNumber) {
  ASSERT_NO_FATAL_FAILURE(Create("order", {"text=INV{date:%y%m%d}{id:09}"}));
  std::string text;
  Thrift().getText(text, "order");
  EXPECT_THAT(text, MatchesRegex("INV[0-9]{6}000000001"));
  const Json texts = Rest("order?count=25&form=text").at("texts");
  ASSERT_EQ(texts.size(), 25u);
  for (int i = 0; i < 25; ++i) {  // across the end of a range
    const std::string number = std::to_string(i + 2);
    EXPECT_TRUE(texts.at(static_cast<size_t>(i))
                    .text()
                    .ends_with(std::string(9 - number.size(), '0') + number))
        << texts;
  }
  EXPECT_EQ(Thrift().getId("order"), 27) << "numbers continue without their text form";
}

// One server has the last numbers in memory when the store has none for the other.
TEST_F(SegmentPluginsTest, TheServerWithTheLastNumbersIssuesThem) {
  ASSERT_NO_FATAL_FAILURE(Create("last", {"start=9223372036854775767", "step_max=20"}));
  RunningServer other(dir_ / "other", {"--registry=" + registry()});
  ASSERT_TRUE(other.BecomesReady()) << other.log();
  const auto known = [&] { return other.Get("/v1/ids/last?count=0").status == 400; };
  ASSERT_TRUE(Eventually(kPatience, known)) << other.log();

  Client client({.servers = "list://" + server_->address() + "," + other.address(),
                 .deadline = kPatience,
                 .attempt_limit = kPatience});
  std::set<int64_t> seen;
  for (int i = 0; i < 40; ++i) {
    const auto id = client.GetId("last");
    ASSERT_TRUE(id.ok()) << i << ": " << id.status();
    EXPECT_TRUE(seen.insert(*id).second) << *id;
  }
  EXPECT_EQ(*seen.rbegin(), 9'223'372'036'854'775'806);
  EXPECT_EQ(client.GetId("last").code(), Code::kExhausted);
}

TEST_F(SegmentPluginsTest, AnObfuscatedTagShowsEachNumberOnceAndObfuscated) {
  ASSERT_NO_FATAL_FAILURE(
      Create("hidden", {"plugins=obfuscate,history", "obfuscate.width=9", "obfuscate.key=k1",
                        "obfuscate.check=c6a13b", "text=#{id:09}"}));
  std::vector<int64_t> shown;
  Thrift().getIds(shown, "hidden", 50);
  shown.push_back(Thrift().getId("hidden"));
  const Json answer = Rest("hidden?count=50");
  for (const Json& id : answer.at("ids")) {
    shown.push_back(std::stoll(id.text()));
  }
  std::string text;
  Thrift().getText(text, "hidden");
  ASSERT_THAT(text, MatchesRegex("#[0-9]{9}"));
  shown.push_back(std::stoll(text.substr(1)));

  const auto key = ReadKeyFile(KeyFile());
  ASSERT_TRUE(key.ok()) << key.status();
  const auto plugin = ObfuscatePlugin::Make(*MakeAes(*key), "hidden", 9);
  for (size_t i = 0; i < shown.size(); ++i) {
    EXPECT_EQ((*plugin)->Reveal(shown[i]).value_or(-1), static_cast<int64_t>(i) + 1);
  }
  EXPECT_TRUE(IsRecorded(" hidden 51 1 1 thrift ")) << "before obfuscation: " << History();
}

TEST_F(SegmentPluginsTest, RefusesRunsOfAnObfuscatedTagBeforeUsingANumber) {
  ASSERT_NO_FATAL_FAILURE(Create("hidden", {"plugins=obfuscate,history", "obfuscate.width=9",
                                            "obfuscate.key=k1", "obfuscate.check=c6a13b"}));
  std::vector<wire::IdRun> runs;
  EXPECT_EQ(ThriftRefusal([&] { Thrift().getRuns(runs, "hidden", 5); }), wire::Reason::REJECTED);
  EXPECT_EQ(RestRefusal("hidden?count=5&form=runs"), "REJECTED");
  Thrift().getId("hidden");
  EXPECT_TRUE(IsRecorded(" hidden 1 1 1 thrift ")) << History();
}

TEST_F(SegmentPluginsTest, AClientReportsThatAnObfuscatedTagIsNotPrefetched) {
  ASSERT_NO_FATAL_FAILURE(Create("hidden", {"plugins=obfuscate", "obfuscate.width=9",
                                            "obfuscate.key=k1", "obfuscate.check=c6a13b"}));
  std::promise<std::string> told;
  std::once_flag once;
  Client client({.servers = "list://" + server_->address(),
                 .deadline = kPatience,
                 .attempt_limit = kPatience,
                 .local_ranges = LocalRanges({LocalTag::Segment("hidden")}),
                 .on_event = [&](const ClientEvent& event) {
                   if (event.kind != ClientEvent::Kind::kNotPrefetched) return;
                   std::call_once(once, [&] { told.set_value(event.detail); });
                 }});
  const auto id = client.GetId("hidden");
  EXPECT_TRUE(id.ok()) << id.status();
  auto detail = told.get_future();
  ASSERT_EQ(detail.wait_for(kPatience), std::future_status::ready);
  EXPECT_THAT(detail.get(), HasSubstr("tag 'hidden'"));
}

TEST_F(SegmentPluginsTest, ACallRefusedByALimitUsesNoNumbers) {
  ASSERT_NO_FATAL_FAILURE(
      Create("limited", {"plugins=limit,history", "limit.per_second=1000000", "limit.burst=30"}));
  std::vector<wire::IdRun> runs;
  EXPECT_EQ(ThriftRefusal([&] { Thrift().getRuns(runs, "limited", 31); }), wire::Reason::REJECTED);
  EXPECT_EQ(server_->Get("/v1/ids/limited?count=31").status, 429);
  Thrift().getRuns(runs, "limited", 30);
  ASSERT_EQ(runs.size(), 1u) << "across the end of a range";
  EXPECT_EQ(runs[0].first, 1);
  EXPECT_EQ(runs[0].count, 30);
  EXPECT_TRUE(IsRecorded(" limited 1 30 1 thrift ")) << History();
}

TEST_F(SegmentPluginsTest, PluginsApplyToATagWithoutABuffer) {
  ASSERT_NO_FATAL_FAILURE(Create("rising", {"buffer=none", "plugins=history", "text=R{id:06}"}));
  std::string text;
  Thrift().getText(text, "rising");
  EXPECT_EQ(text, "R000001");
  EXPECT_EQ(Rest("rising?form=text").at("texts"), Json::array({"R000002"}));
  EXPECT_TRUE(IsRecorded(" rising 2 1 1 http ")) << History();
}

}  // namespace
}  // namespace firn
