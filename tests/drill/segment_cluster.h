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

// Whole servers on a real ZooKeeper whose segment tags use real stores, and callers that take their
// numbers. At the end of a test, each tag is checked and one line is printed: numbers, duplicates,
// and the count of numbers below the ledger that no caller got.
class SegmentCluster : public Drill {
 protected:
  // Reads a number from the environment, or returns `otherwise`.
  static int64_t FromEnvironment(const char* name, int64_t otherwise);
  // Returns FIRN_SOAK_SECONDS, or the default.
  static Milliseconds SoakTime(int64_t seconds);

  // Starts ZooKeeper, MariaDB and PostgreSQL with the tables `firn_tag` and `leaf_alloc` (a row for
  // the tag `leaf`), Redis, and writes a file of stores:
  //
  //     main, alloc   Firn's table and Leaf's in MariaDB
  //     elephant      Firn's table in PostgreSQL
  //     cache         Redis
  //     tier, near    Redis in front of `main`, and of the registry
  void StartStores();
  // Returns the lines of a store at a loopback port that forwards to the database.
  static std::string StoreLines(const SqlServer& database, int port);

  // Writes a file for `firn tags apply`.
  void ApplyTags(const std::string& ini);

  // Starts servers and waits until they are ready; adds `flags` to the required ones.
  void StartServers(int count, const std::vector<std::string>& flags = {});
  // Starts one server with its own stores file.
  void StartServer(const std::string& stores_file, const std::vector<std::string>& flags);

  struct Load {
    std::vector<std::string> tags;
    int threads = 1;        // for each server
    int64_t count = 1;      // numbers per call
    Milliseconds pause{1};  // pause of a thread between calls
    std::string awkward{};  // tag of which awkward readers also take lists; empty: none
  };
  void StartLoad(const Load& load);
  // Ends all calls and returns the counts as TakeCounts does. Adds the numbers of awkward readers
  // to the takings of their tag.
  std::map<std::string, CallCounts> StopLoad();

  // Returns the counts of all callers, by tag, since the last TakeCounts.
  std::map<std::string, CallCounts> TakeCounts();

  // Waits for `answers` more answers for each of the tags. A failure names a tag without answers.
  testing::AssertionResult GoOn(const std::vector<std::string>& tags, int64_t answers = 20);

  // Kills a server with SIGKILL and starts it again.
  void RestartServer(size_t i);

  Takings& takings(const std::string& tag);
  int64_t LedgerOf(const std::string& tag);
  // Returns a metric of a tag from a server's admin port, or -1 if it is missing.
  double Metric(size_t server, const std::string& name, const std::string& tag);

  // Checks that no number was issued twice, that some were issued, and that all are below the
  // ledger. Returns the count of issued numbers.
  int64_t JudgeTag(const std::string& tag);
  // As JudgeTag; also checks that the numbers rose over the whole cluster in real time.
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
