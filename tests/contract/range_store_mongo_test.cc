#include <memory>
#include <string>

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
  // Unlike MongoDB's, FerretDB's findAndModify is a find and then an update.
  bool is_atomic() const override { return false; }

 private:
  static FerretDb* Server() {
    static const auto server = FerretDb::Start();
    return server.ok() ? server.value().get() : nullptr;
  }

  static inline int worlds_ = 0;
  const std::string collection_;
};

// A server in memory whose commands are atomic.
class ScriptedWorld final : public RangeStoreWorld {
 public:
  std::unique_ptr<RangeStore> Open() override { return OpenMongo(server_.port(), "firn_tag"); }

 private:
  ScriptedMongo server_;
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
