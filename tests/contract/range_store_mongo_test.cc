#include <csignal>
#include <memory>
#include <string>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/store/mongo/mongo_store.h"
#include "tests/contract/range_store_contract.h"
#include "tests/support/database/ferret_db.h"
#include "tests/support/database/scripted_mongo.h"

namespace firn {
namespace {

std::unique_ptr<RangeStore> OpenMongo(int port, const std::string& collection) {
  MongoStore::Options options{.name = "main",
                              .place = {.addresses = {{"127.0.0.1", static_cast<uint16_t>(port)}},
                                        .database = "ids",
                                        .collection = collection,
                                        .time_limit = Milliseconds(60'000)}};
  return std::make_unique<MongoStore>(std::move(options), SystemClock(), SystemEntropy(),
                                      [](const std::string&) {});
}

// One server for the whole program; every world has its own collection.
class FerretWorld final : public RangeStoreWorld {
 public:
  FerretWorld() : collection_("ranges" + std::to_string(++worlds_)) {
    EXPECT_NE(Server(), nullptr);
  }

  std::unique_ptr<RangeStore> Open() override { return OpenMongo(Server()->port(), collection_); }
  bool marks_cluster() const override { return true; }
  // Unlike MongoDB's, FerretDB's findAndModify consists of a find and an update.
  bool is_atomic() const override { return false; }

 private:
  static FerretDb* Server() {
    static const auto server = FerretDb::Start();
    return server.ok() ? server.value().get() : nullptr;
  }

  static inline int worlds_ = 0;
  const std::string collection_;
};

// A server in memory whose commands are atomic. It has threads, and the suite forks: a child could
// inherit a heap that a thread has locked. So the server runs in a separate process.
class ScriptedWorld final : public RangeStoreWorld {
 public:
  ScriptedWorld() {
    int told[2];
    EXPECT_EQ(pipe2(told, O_CLOEXEC), 0);
    server_ = fork();
    if (server_ == 0) Serve(told[1]);
    close(told[1]);
    EXPECT_EQ(read(told[0], &port_, sizeof port_), ssize_t{sizeof port_});
    close(told[0]);
  }
  ~ScriptedWorld() override {
    kill(server_, SIGKILL);
    waitpid(server_, nullptr, 0);
  }

  std::unique_ptr<RangeStore> Open() override { return OpenMongo(port_, "firn_tag"); }

 private:
  [[noreturn]] static void Serve(int tell) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const ScriptedMongo server;
    const int port = server.port();
    if (write(tell, &port, sizeof port) != ssize_t{sizeof port}) _exit(1);
    while (true) pause();
  }

  pid_t server_ = -1;
  int port_ = 0;
};

std::unique_ptr<RangeStoreWorld> MakeFerretWorld() {
  return FerretDb::IsBuilt() ? std::make_unique<FerretWorld>() : nullptr;
}

INSTANTIATE_TEST_SUITE_P(
    Mongo, RangeStoreContract,
    testing::Values(RangeWorldMaker{"ferretdb", MakeFerretWorld},
                    RangeWorldMaker{"scripted", [] { return std::make_unique<ScriptedWorld>(); }}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace firn
