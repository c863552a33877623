#include "server/configured_stores.h"

#include <memory>
#include <string>
#include <utility>

#include "common/log/log.h"
#include "server/store/ledgered_source.h"
#include "server/store/mongo/mongo_store.h"
#include "server/store/mysql/mysql_connection.h"
#include "server/store/postgres/postgres_connection.h"
#include "server/store/redis/redis_store.h"
#include "server/store/redis/tiered_source.h"
#include "server/store/registry_source.h"
#include "server/store/table/failover_connection.h"
#include "server/store/table/table_store.h"

namespace firn {
namespace {

// Creates the stores of a file.
class StoreMaker {
 public:
  StoreMaker(const StoresIni& ini, SegmentTags& segments, const Clock& clock, Entropy& entropy)
      : ini_(ini), segments_(segments), clock_(clock), entropy_(entropy) {}

  Status Add(const StoreDefinition& store) {
    const auto* tiered = std::get_if<TieredDefinition>(&store.what);
    return tiered != nullptr ? AddTiered(store.name, *tiered) : segments_.AddStore(Make(store));
  }

 private:
  static std::function<void(const std::string&)> Alarm(const std::string& name) {
    return [name](const std::string& sentence) {
      LogError("store_alarm").With("store", name) << "store " << name << ": " << sentence;
    };
  }

  // Makes a store of any kind except tiered.
  std::unique_ptr<RangeStore> Make(const StoreDefinition& store) {
    if (const auto* table = std::get_if<TableDefinition>(&store.what)) {
      return Make(store.name, *table);
    }
    if (const auto* mongo = std::get_if<MongoDefinition>(&store.what)) {
      return Make(store.name, *mongo);
    }
    return Make(store.name, std::get<RedisDefinition>(store.what));
  }

  std::unique_ptr<RangeStore> Make(const std::string& name, const TableDefinition& definition) {
    return std::make_unique<TableStore>(TableStore::Options{.name = name}, Connection(definition),
                                        definition.table, clock_, entropy_, Alarm(name));
  }

  std::unique_ptr<SqlConnection> Connection(const TableDefinition& definition) {
    std::vector<std::unique_ptr<SqlConnection>> servers;
    for (const Endpoint& address : definition.addresses) {
      DatabasePlace place = definition.place;
      place.address = address;
      if (definition.table.dialect() == SqlDialect::kMysql) {
        servers.push_back(std::make_unique<MysqlConnection>(std::move(place)));
      } else {
        servers.push_back(std::make_unique<PostgresConnection>(std::move(place), clock_));
      }
    }
    return std::make_unique<FailoverConnection>(std::move(servers));
  }

  std::unique_ptr<RangeStore> Make(const std::string& name, const MongoDefinition& mongo) {
    return std::make_unique<MongoStore>(MongoStore::Options{.name = name, .place = mongo.place},
                                        clock_, entropy_, Alarm(name));
  }

  std::unique_ptr<RangeStore> Make(const std::string& name, const RedisDefinition& redis) {
    return std::make_unique<RedisStore>(
        RedisStore::Options{.name = name, .place = redis.place, .prefix = redis.prefix}, clock_,
        entropy_, Alarm(name));
  }

  // The parser has checked that both sides exist and are of the right kind.
  Status AddTiered(const std::string& name, const TieredDefinition& tiered) {
    const auto& redis = std::get<RedisDefinition>(ini_.Find(tiered.front)->what);
    auto hash = std::make_unique<TieredHash>(
        TieredHash::Options{.place = redis.place, .prefix = redis.prefix}, clock_, entropy_);
    const auto ledger = [&ledger = segments_.ledger()](const TagDefinition& tag,
                                                       Ledger::PlaceDone done) {
      ledger.WhereNow(tag, std::move(done));
    };
    return segments_.AddSource(
        name, std::make_unique<TieredSource>(name, std::move(hash), DurableSide(tiered.durable),
                                             ledger, segments_.control(), Alarm(name)));
  }

  std::unique_ptr<RangeSource> DurableSide(const std::string& name) {
    const StoreDefinition* const store = ini_.Find(name);
    if (store == nullptr) {
      return std::make_unique<RegistrySource>(segments_.ledger(), segments_.control());
    }
    return std::make_unique<LedgeredSource>(Make(*store), segments_.ledger(), segments_.control(),
                                            clock_);
  }

  const StoresIni& ini_;
  SegmentTags& segments_;
  const Clock& clock_;
  Entropy& entropy_;
};

}  // namespace

Status AddStores(const StoresIni& ini, SegmentTags& segments, const Clock& clock,
                 Entropy& entropy) {
  FIRN_TRY(ini.status());
  StoreMaker maker(ini, segments, clock, entropy);
  for (const StoreDefinition& store : ini.stores) FIRN_TRY(maker.Add(store));
  return {};
}

}  // namespace firn
