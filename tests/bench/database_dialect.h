#pragma once

#include <memory>
#include <string_view>

#include "tests/bench/dialect.h"

namespace firn {

// The wire protocols of two databases, as far as a counter needs them, for servers that a benchmark
// has set up itself: user `bench` without a password, no TLS. Their client libraries keep only one
// request in flight per connection, so they would be measured instead of the servers.

// nextval of the sequence `subject` in database `postgres`, as a prepared statement.
std::unique_ptr<Dialect> MakePostgresqlDialect(std::string_view subject);

// UPDATE of the one row of table `subject` in database `bench`, (id BIGINT), by LAST_INSERT_ID.
std::unique_ptr<Dialect> MakeMysqlDialect(std::string_view subject);

}  // namespace firn
