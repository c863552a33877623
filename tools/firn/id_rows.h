#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/net/endpoint.h"

namespace firn {

// A database with tags in a table of Leaf's or Tinyid's.
struct IdDatabase {
  Endpoint address;
  std::string database;

  // "host:port/database". kInvalid says what is amiss.
  static Result<IdDatabase> Parse(std::string_view text);
  std::string ToString() const { return address.ToString() + "/" + database; }
};

// A row as it stands there; numbers are texts, as nobody has checked them.
struct IdRow {
  std::string tag;
  std::string max_id;
  std::string step;
  std::string delta = "1";
  std::string remainder = "0";
};

enum class IdTable { kLeaf, kTinyid };

inline constexpr size_t kIdRowsMax = 10'000;

// All rows of the table. `credentials` is user:password. Nothing there is changed. The only code of
// the command that knows the vendor's library.
Result<std::vector<IdRow>> ReadIdRows(const IdDatabase& place, const std::string& credentials,
                                      IdTable form, const std::string& table);

}  // namespace firn
