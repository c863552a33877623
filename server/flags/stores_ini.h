#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/tag/ini_line.h"
#include "server/store/mongo/mongo_connection.h"
#include "server/store/redis/redis_connection.h"
#include "server/store/table/database_place.h"
#include "server/store/table/range_table.h"

namespace firn {

// The stores of a server besides `registry`, as a file:
//
//     [main]                          ; the name in tags: store = main
//     kind             = mysql         ; or postgres
//     address          = db.example:3306
//     database         = ids
//     credentials_file = /etc/firn/main.cred
//
//     [fast]
//     kind             = tiered
//     front            = cache        ; a store of kind redis
//     durable          = main
//
// tools/package/stores.ini, which is installed with the server, shows all kinds and keys. The
// grammar is common/tag/ini_line.h's; each key occurs at most once.

// A store of kind mysql or postgres: the table's dialect determines which.
struct TableDefinition {
  DatabasePlace place;                // with the first address
  std::vector<Endpoint> addresses{};  // all addresses, in the file's order
  RangeTable table;
};
struct RedisDefinition {
  RedisPlace place;
  std::string prefix;
};
struct MongoDefinition {
  MongoPlace place;
};
struct TieredDefinition {
  std::string front;
  std::string durable;
};

struct StoreDefinition {
  std::string name;
  std::variant<TableDefinition, RedisDefinition, MongoDefinition, TieredDefinition> what;
};

struct StoresIni {
  std::vector<StoreDefinition> stores;  // in the file's order; use them only if there are no faults
  std::vector<LineFault> faults;        // sorted by line; at most LineFaults::kMost

  // Returns null if there is no store of that name.
  const StoreDefinition* Find(std::string_view name) const;

  // Ok, or kInvalid with a line of text for each fault.
  Status status() const { return StatusOf(faults); }
};

inline constexpr size_t kStoresIniBytesMax = 1 << 20;
inline constexpr size_t kStoresMax = 100;

// Never fails as a whole: each error becomes a fault of its line.
StoresIni ParseStoresIni(std::string_view text);

}  // namespace firn
