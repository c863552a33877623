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

// The stores that a server has beside `registry`, as a file that people write:
//
//     [main]                          ; what tags say: store = main
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
// tools/package/stores.ini, which is installed with the server, shows all kinds and keys.
//
// A grammar of common/tag/ini_line.h; each key at most once.

// Of kind mysql or postgres, as the table's dialect says.
struct TableDefinition {
  DatabasePlace place;                // of the first address
  std::vector<Endpoint> addresses{};  // all of them, in the file's order
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
  std::vector<StoreDefinition> stores;  // in the file's order; to be used only without faults
  std::vector<LineFault> faults;        // by line; at most LineFaults::kMost

  // Null when there is none of that name.
  const StoreDefinition* Find(std::string_view name) const;

  // Ok, or kInvalid with a line of text for each fault.
  Status status() const { return StatusOf(faults); }
};

inline constexpr size_t kStoresIniBytesMax = 1 << 20;
inline constexpr size_t kStoresMax = 100;

// Never fails as a whole: whatever is wrong becomes a fault of its line.
StoresIni ParseStoresIni(std::string_view text);

}  // namespace firn
