#include "tests/drill/segment_cluster.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <thrift/TOutput.h>

#include "common/base/cat.h"
#include "common/json/json.h"
#include "tests/support/database/range_tables.h"
#include "tests/support/json_of.h"

namespace firn {

namespace {

void MakeTables(SqlServer& database, SqlDialect dialect) {
  for (const auto& sql : {CreateTableSql(TableForm::kFirn, "firn_tag", dialect),
                          CreateTableSql(TableForm::kLeaf, "leaf_alloc", dialect),
                          InsertRowSql(TableForm::kLeaf, "leaf_alloc", "leaf", 1, dialect)}) {
    ASSERT_EQ(database.Run(sql), Status());
  }
}

}  // namespace

int64_t SegmentCluster::FromEnvironment(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : otherwise;
}

Milliseconds SegmentCluster::SoakTime(int64_t seconds) {
  return Milliseconds(1000 * FromEnvironment("FIRN_SOAK_SECONDS", seconds));
}

// --- setting up ---------------------------------------------------------------------------------

void SegmentCluster::StartStores() {
  // Callers count broken connections, so the library need not log them.
  apache::thrift::GlobalOutput.setOutputFunction([](const char*) {});
  ASSERT_NO_FATAL_FAILURE(StartEnsemble(1));
  auto mariadb = MariaDb::Start();
  auto postgres = Postgres::Start();
  auto redis = Redis::Start({.append_only = false});
  ASSERT_TRUE(mariadb.ok()) << mariadb.status();
  ASSERT_TRUE(postgres.ok()) << postgres.status();
  ASSERT_TRUE(redis.ok()) << redis.status();
  mariadb_ = *std::move(mariadb);
  postgres_ = *std::move(postgres);
  redis_ = *std::move(redis);
  ASSERT_NO_FATAL_FAILURE(MakeTables(*mariadb_, SqlDialect::kMysql));
  ASSERT_NO_FATAL_FAILURE(MakeTables(*postgres_, SqlDialect::kPostgres));
  const std::string mysql = StoreLines(*mariadb_, mariadb_->port());
  const std::string redis_lines = "kind = redis\naddress = " + redis_->address() + "\n";
  std::ofstream(folder("stores.ini")) << "[main]\n"
                                      << mysql << "[alloc]\n"
                                      << mysql << "form = leaf\ntable = leaf_alloc\n"
                                      << "[elephant]\n"
                                      << StoreLines(*postgres_, postgres_->port()) << "[cache]\n"
                                      << redis_lines << "prefix = hash:\n"
                                      << "[front]\n"
                                      << redis_lines << "prefix = tier:\n"
                                      << "[tier]\nkind = tiered\nfront = front\ndurable = main\n"
                                      << "[before]\n"
                                      << redis_lines << "prefix = near:\n"
                                      << "[near]\nkind = tiered\nfront = before\n"
                                      << "durable = registry\n";
}

std::string SegmentCluster::StoreLines(const SqlServer& database, int port) {
  const bool mysql = dynamic_cast<const MariaDb*>(&database) != nullptr;
  return Cat("kind = ", mysql ? "mysql" : "postgres", "\naddress = 127.0.0.1:", port,
             "\ndatabase = ids\ncredentials_file = ", database.credentials_file(), "\n");
}

void SegmentCluster::ApplyTags(const std::string& ini) {
  std::ofstream(folder("tags.ini")) << ini;
  const Finished applied = Firn({"tags", "apply", folder("tags.ini")});
  ASSERT_EQ(applied.exit_code, 0) << applied.err;
}

void SegmentCluster::StartServers(int count, const std::vector<std::string>& flags) {
  for (int i = 0; i < count; ++i) StartServer(folder("stores.ini"), flags);
  for (const auto& server : servers_) ASSERT_TRUE(server->BecomesReady()) << server->log();
}

void SegmentCluster::StartServer(const std::string& stores_file,
                                 const std::vector<std::string>& flags) {
  std::vector<std::string> all{"--registry=" + registry(), "--session_timeout_ms=2000",
                               "--stores_file=" + stores_file};
  all.insert(all.end(), flags.begin(), flags.end());
  servers_.push_back(std::make_unique<RunningServer>(
      folder("server" + std::to_string(servers_.size())), std::move(all)));
}

void SegmentCluster::RestartServer(size_t i) {
  servers_[i]->Kill();
  servers_[i]->StartAgain();
  EXPECT_TRUE(servers_[i]->BecomesReady()) << servers_[i]->log();
}

// --- load ---------------------------------------------------------------------------------------

Takings& SegmentCluster::takings(const std::string& tag) { return takings_[tag]; }

void SegmentCluster::StartLoad(const Load& load) {
  SegmentCaller::TakingsByTag tags;
  for (const std::string& tag : load.tags) tags[tag] = &takings_[tag];
  for (const auto& server : servers_) {
    for (int i = 0; i < load.threads; ++i) {
      const SegmentCaller::Options options{server->port(), load.count, load.pause};
      callers_.push_back(std::make_unique<SegmentCaller>(options, tags));
    }
  }
  if (load.awkward.empty()) return;
  std::vector<int> ports;
  for (const auto& server : servers_) ports.push_back(server->port());
  awkward_[load.awkward] = std::make_unique<AwkwardReaders>(ports, load.awkward);
}

std::map<std::string, CallCounts> SegmentCluster::StopLoad() {
  for (const auto& caller : callers_) caller->Stop();
  std::map<std::string, CallCounts> counts = TakeCounts();
  callers_.clear();
  for (const auto& [tag, readers] : awkward_) {
    readers->Stop();
    const std::vector<int64_t> numbers = readers->ids();
    EXPECT_FALSE(numbers.empty()) << "awkward readers of " << tag << " got no numbers";
    takings_[tag].AddLate(numbers);
    EXPECT_EQ(takings_[tag].Judge().duplicates, 0) << tag;
  }
  awkward_.clear();
  return counts;
}

std::map<std::string, CallCounts> SegmentCluster::TakeCounts() {
  std::map<std::string, CallCounts> sum;
  for (const auto& caller : callers_) {
    for (const auto& [tag, counts] : caller->TakeCounts()) sum[tag] += counts;
  }
  return sum;
}

testing::AssertionResult SegmentCluster::GoOn(const std::vector<std::string>& tags,
                                              int64_t answers) {
  std::map<std::string, int64_t> before;
  for (const std::string& tag : tags) before[tag] = takings_[tag].answers();
  for (const std::string& tag : tags) {
    const auto goes_on = [&] { return takings_[tag].answers() >= before[tag] + answers; };
    if (Eventually(kPatience, goes_on)) continue;
    return testing::AssertionFailure()
           << tag << " is not served: " << TakeCounts()[tag].last_trouble << "\n"
           << servers_[0]->log();
  }
  return testing::AssertionSuccess();
}

// --- reading ------------------------------------------------------------------------------------

int64_t SegmentCluster::LedgerOf(const std::string& tag) {
  const Finished shown = Firn({"tags", "show", tag, "--json"});
  const Json json = JsonOf(shown.out);
  return json.is_array() ? std::stoll(json.at(0).at("high").text()) : -1;
}

double SegmentCluster::Metric(size_t server, const std::string& name, const std::string& tag) {
  std::istringstream page(servers_[server]->Admin("/metrics").body);
  const std::string wanted = name + "{tag=\"" + tag + "\"} ";
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with(wanted)) return std::stod(line.substr(wanted.size()));
  }
  return -1;
}

int64_t SegmentCluster::JudgeTag(const std::string& tag) {
  const Takings::Findings found = takings_[tag].Judge();
  const int64_t ledger = LedgerOf(tag);
  EXPECT_EQ(found.duplicates, 0) << tag;
  EXPECT_GT(found.ids, 0) << tag;
  EXPECT_LT(takings_[tag].highest(), ledger) << tag;
  std::printf("drill %s: %s: numbers %lld, duplicates %lld, covered and not given %lld\n",
              testing::UnitTest::GetInstance()->current_test_info()->name(), tag.c_str(),
              static_cast<long long>(found.ids), static_cast<long long>(found.duplicates),
              static_cast<long long>(ledger - 1 - found.ids));
  return found.ids;
}

void SegmentCluster::JudgeRisingTag(const std::string& tag) {
  JudgeTag(tag);
  EXPECT_EQ(takings_[tag].Judge().fallen, 0)
      << "numbers of " << tag << " that were not above those answered before";
}

}  // namespace firn
