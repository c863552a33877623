#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/secret_file.h"
#include "common/base/status.h"
#include "common/net/endpoint.h"

namespace firn {

// The address of a Leaf or Tinyid database.
struct IdDatabase {
  Endpoint address;
  std::string database;

  // Parses "host:port/database".
  static Result<IdDatabase> Parse(std::string_view text);
  std::string ToString() const { return address.ToString() + "/" + database; }
};

// A row as read from the database. The numbers are unchecked text.
struct IdRow {
  std::string tag;
  std::string max_id;
  std::string step;
  std::string delta = "1";
  std::string remainder = "0";
};

enum class IdTable { kLeaf, kTinyid };

inline constexpr size_t kIdRowsMax = 10'000;

// Returns all rows of the table and changes nothing. Fails if the table has more than kIdRowsMax
// rows. Only the implementation of this function uses the MySQL client library.
Result<std::vector<IdRow>> ReadIdRows(const IdDatabase& place, const Credentials& credentials,
                                      IdTable form, const std::string& table);

}  // namespace firn
