// Dated numbers over HTTP and Thrift, in the firn command and in the C++ client.

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include "client/client.h"
#include "client/local_ranges.h"
#include "common/json/json.h"
#include "common/text/dated_numbers.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"
#include "tests/server/program/running_server.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "thrift/gen/IdService.h"

namespace firn {
namespace {

using testing::HasSubstr;

class DatedNumbersProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    server_ = std::make_unique<RunningServer>(
        dir_ / "state",
        std::vector<std::string>{"--registry=" + registry(), "--issue_wait_ms=30000"});
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  }

  Finished Tags(std::vector<std::string> words) const {
    words.insert(words.begin(), "tags");
    return RunFirn(words, {"--registry=" + registry()});
  }
  void Create(const std::string& tag, const std::vector<std::string>& settings) {
    std::vector<std::string> words{"create", tag, "strategy=dated"};
    words.insert(words.end(), settings.begin(), settings.end());
    const Finished made = Tags(words);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const auto known = [&] { return server_->Get("/v1/ids/" + tag + "?count=0").status == 400; };
    ASSERT_TRUE(Eventually(kPatience, known)) << server_->log();
  }

  std::vector<int64_t> Ids(const std::string& target) const {
    const auto answer = server_->Get("/v1/ids/" + target);
    EXPECT_EQ(answer.status, 200) << answer.body;
    std::vector<int64_t> ids;
    const Json json = JsonOf(answer.body);
    for (const Json& id : json.at("ids")) {
      ids.push_back(std::stoll(id.text()));
    }
    return ids;
  }

  // A zone in which it is about noon, so that no test runs over midnight.
  static std::string NoonZone() {
    const int ahead = 12 - CivilAt(SystemClock().Wall()).hour;
    const std::string hours = std::to_string(std::abs(ahead));
    return (ahead < 0 ? "-" : "+") + std::string(2 - hours.size(), '0') + hours + ":00";
  }
  // The date in that zone, which is also that of UTC.
  static int64_t Today() {
    return DatedNumbers(Period::kDay, 1).PeriodAt(SystemClock().Wall(), TimeZone::Utc());
  }

  wire::IdServiceClient& Thrift() {
    using namespace apache::thrift;  // NOLINT(build/namespaces): three classes of three namespaces
    const auto socket = std::make_shared<transport::TSocket>("127.0.0.1", server_->port());
    socket->setRecvTimeout(static_cast<int>(kPatience.count()));
    socket->open();
    thrift_ = std::make_unique<wire::IdServiceClient>(std::make_shared<protocol::TBinaryProtocol>(
        std::make_shared<transport::TFramedTransport>(socket)));
    return *thrift_;
  }

  std::string registry() const { return "dir://" + (dir_ / "registry"); }

  TempDir dir_;
  std::unique_ptr<RunningServer> server_;
  std::unique_ptr<wire::IdServiceClient> thrift_;
};

TEST_F(DatedNumbersProgramTest, CountsFromOneUnderTheDateAndContinuesAfterAStop) {
  ASSERT_NO_FATAL_FAILURE(
      Create("order", {"zone=" + NoonZone(), "text=ORD-{period}-{count}", "step=50"}));
  const std::string today = std::to_string(Today());
  const int64_t first = Today() * 1'000'000 + 1;
  EXPECT_EQ(Ids("order"), std::vector<int64_t>{first});
  const auto text = server_->Get("/v1/ids/order?form=text");
  EXPECT_THAT(text.body, HasSubstr("\"ORD-" + today + "-000002\""));
  const std::vector<int64_t> many = Ids("order?count=120");
  ASSERT_EQ(many.size(), 120u);
  EXPECT_EQ(many.front(), first + 2);
  EXPECT_EQ(many.back(), first + 121);

  server_->process().Signal(SIGTERM);
  ASSERT_EQ(server_->process().Wait(kPatience), 0) << server_->log();
  server_->StartAgain();
  ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  EXPECT_EQ(Ids("order"), std::vector<int64_t>{first + 122}) << "unused numbers are given back";
}

TEST_F(DatedNumbersProgramTest, ThriftGivesNumbersAndTextsAndNoRuns) {
  ASSERT_NO_FATAL_FAILURE(Create("order", {"zone=" + NoonZone(), "text=ORD-{period}-{count}"}));
  wire::IdServiceClient& thrift = Thrift();
  const int64_t first = Today() * 1'000'000 + 1;
  EXPECT_EQ(thrift.getId("order"), first);
  std::vector<int64_t> many;
  thrift.getIds(many, "order", 3);
  EXPECT_EQ(many, (std::vector<int64_t>{first + 1, first + 2, first + 3}));
  std::string text;
  thrift.getText(text, "order");
  EXPECT_EQ(text, "ORD-" + std::to_string(Today()) + "-000005");
  std::vector<wire::IdRun> runs;
  try {
    thrift.getRuns(runs, "order", 3);
    ADD_FAILURE() << "runs were returned";
  } catch (const wire::Refusal& refusal) {
    EXPECT_EQ(refusal.reason, wire::Reason::BAD_REQUEST) << refusal.message;
  }
  EXPECT_EQ(thrift.getId("order"), first + 5) << "a refusal takes no number";
}

TEST_F(DatedNumbersProgramTest, RefusesRunsAndLocalRangesOfDatedTags) {
  ASSERT_NO_FATAL_FAILURE(Create("order", {"zone=" + NoonZone()}));
  const auto runs = server_->Get("/v1/ids/order?count=10&form=runs");
  EXPECT_EQ(runs.status, 400);
  EXPECT_THAT(runs.body, HasSubstr("gives no runs"));

  Client client({.servers = "list://" + server_->address(),
                 .deadline = kPatience,
                 .attempt_limit = kPatience,
                 .local_ranges = LocalRanges({LocalTag::Segment("order")})});
  EXPECT_FALSE(client.GetRuns("order", 10).ok());
  const int64_t first = Today() * 1'000'000 + 1;
  for (int64_t i = 0; i < 20; ++i) {
    const Result<int64_t> id = client.GetId("order");
    ASSERT_TRUE(id.ok()) << id.status();
    EXPECT_EQ(*id, first + i);
  }
}

TEST_F(DatedNumbersProgramTest, AcceptsAStartOnTheCurrentDayAndRefusesAFutureOne) {
  const std::string today = std::to_string(Today());
  ASSERT_NO_FATAL_FAILURE(Create("order", {"zone=" + NoonZone(), "start=" + today + "004711"}));
  EXPECT_EQ(Ids("order"), std::vector<int64_t>{Today() * 1'000'000 + 4'711});
  const Finished later = Tags({"set", "order", "start=99970101000001"});
  EXPECT_NE(later.exit_code, 0);
  EXPECT_THAT(later.err, HasSubstr("is in a future period"));
}

TEST_F(DatedNumbersProgramTest, AUsedUpDayReportsWhenTheNextOneBegins) {
  ASSERT_NO_FATAL_FAILURE(Create("few", {"zone=" + NoonZone(), "digits=1", "step=9"}));
  EXPECT_EQ(Ids("few?count=9").size(), 9u);
  const auto refused = server_->Get("/v1/ids/few");
  EXPECT_EQ(refused.status, 503) << refused.body;
  const Json error = JsonOf(refused.body).at("error");
  EXPECT_EQ(error.at("reason"), "OVERLOADED") << refused.body;
  EXPECT_THAT(refused.body, HasSubstr("used up"));
}

}  // namespace
}  // namespace firn
