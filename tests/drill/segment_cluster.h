#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/drill/callers/awkward_readers.h"
#include "tests/drill/callers/segment_caller.h"
#include "tests/drill/callers/takings.h"
#include "tests/drill/drill.h"
#include "tests/server/program/running_server.h"
#include "tests/support/database/mariadb.h"
#include "tests/support/database/postgres.h"
#include "tests/support/database/redis.h"

namespace firn {

// Whole servers on a real ZooKeeper whose segment tags stand on real stores, and callers that take
// numbers of them. At the end of a case each tag is judged and gets one line: numbers, duplicates,
// and how many its ledger covers that nobody got.
class SegmentCluster : public Drill {
 protected:
  // From the environment: how many, or `otherwise`.
  static int64_t FromEnvironment(const char* name, int64_t otherwise);
  // FIRN_SOAK_SECONDS, or so many.
  static Milliseconds SoakTime(int64_t seconds);

  // ZooKeeper, MariaDB and PostgreSQL with the tables `firn_tag` and `leaf_alloc` (a row for the
  // tag `leaf`), Redis, and a file of stores:
  //
  //     main, alloc   Firn's table and Leaf's in MariaDB
  //     elephant      Firn's table in PostgreSQL
  //     cache         Redis
  //     tier, near    Redis in front of `main`, and of the registry
  void StartStores();
  // The lines of a store at a port of loopback that stands for the database.
  static std::string StoreLines(const SqlServer& database, int port);

  // A file for `firn tags apply`.
  void ApplyTags(const std::string& ini);

  // Servers that are ready, with `flags` besides what they need.
  void StartServers(int count, const std::vector<std::string>& flags = {});
  // The same with a file of stores for each.
  void StartServer(const std::string& stores_file, const std::vector<std::string>& flags);

  struct Load {
    std::vector<std::string> tags;
    int threads = 1;        // for each server
    int64_t count = 1;      // numbers a call
    Milliseconds pause{1};  // of a thread, between calls
    std::string awkward{};  // a tag of which awkward readers take lists, too; empty: there are none
  };
  void StartLoad(const Load& load);
  // Ends all calls; what TakeCounts would have said. Numbers that awkward readers have got count as
  // takings of their tag from now on.
  std::map<std::string, CallCounts> StopLoad();

  // Of all callers, by tag, since the last time.
  std::map<std::string, CallCounts> TakeCounts();

  // So many answers more for each of the tags; says which one stands still.
  testing::AssertionResult GoOn(const std::vector<std::string>& tags, int64_t answers = 20);

  // kill -9, and again.
  void RestartServer(size_t i);

  Takings& takings(const std::string& tag);
  int64_t LedgerOf(const std::string& tag);
  // A metric of a tag on a server's admin side; -1 when it is not there.
  double Metric(size_t server, const std::string& name, const std::string& tag);

  // No number twice, some at all, and none that the ledger does not cover. How many were given.
  int64_t JudgeTag(const std::string& tag);
  // The same, and that its numbers rose over the whole cluster in real time.
  void JudgeRisingTag(const std::string& tag);

  SqlServer& mariadb() { return *mariadb_; }
  SqlServer& postgres() { return *postgres_; }
  Redis& redis() { return *redis_; }
  std::vector<std::unique_ptr<RunningServer>>& servers() { return servers_; }

 private:
  std::unique_ptr<MariaDb> mariadb_;
  std::unique_ptr<Postgres> postgres_;
  std::unique_ptr<Redis> redis_;
  std::vector<std::unique_ptr<RunningServer>> servers_;
  std::map<std::string, Takings> takings_;
  std::vector<std::unique_ptr<SegmentCaller>> callers_;
  std::map<std::string, std::unique_ptr<AwkwardReaders>> awkward_;  // by tag
};

}  // namespace firn
