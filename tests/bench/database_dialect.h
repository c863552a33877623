#pragma once

#include <memory>
#include <string_view>

#include "tests/bench/dialect.h"

namespace firn {

// The parts of two databases' wire protocols that a counter needs, for servers that a benchmark has
// set up: user `bench` without a password, no TLS. The databases' client libraries keep only one
// request in flight per connection, so they would limit the measurement.

// nextval of the sequence `subject` in database `postgres`, as a prepared statement.
std::unique_ptr<Dialect> MakePostgresqlDialect(std::string_view subject);

// UPDATE of the one row of table `subject` in database `bench`, (id BIGINT), by LAST_INSERT_ID.
std::unique_ptr<Dialect> MakeMysqlDialect(std::string_view subject);

}  // namespace firn
