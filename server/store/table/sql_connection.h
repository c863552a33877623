#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/base/status.h"

namespace firn {

// A connection to a database server. It never comes back by itself: after any failure that leaves
// it in doubt it is closed, and the next Open makes a new one, so that an answer always belongs to
// the statement that was just sent.
//
// Owned by one thread. Each database has one class that implements it, and that alone knows the
// vendor's library.
class SqlConnection {
 public:
  using Parameter = std::variant<int64_t, std::string>;
  using Row = std::vector<std::string>;  // numbers in decimal; NULL is empty

  struct Answer {
    std::vector<Row> rows{};
    uint64_t affected = 0;   // rows that the statement has changed
    uint64_t insert_id = 0;  // MySQL's LAST_INSERT_ID of this statement
  };
  static constexpr size_t kRowsMax = 100'000;

  virtual ~SqlConnection() = default;

  virtual bool is_open() const = 0;

  // Connects, each statement a transaction of its own, values that do not fit refused. Reads the
  // credentials anew, so that they may be changed under a running program. kUnavailable when the
  // server is away, or takes no writes and says so; kDenied when it does not let us in.
  virtual Status Open() = 0;
  virtual void Close() = 0;

  // Of the last failure: whether the server was not reached, or has not answered. Its own word is
  // not that, unless it says that it is on its way down or up.
  virtual bool away() const = 0;

  // Executes one statement. Parameters never become part of its text.
  //
  // kUnknown, and closed, when no answer came; any other failure is the server's word that nothing
  // was done. Still open after a failure that says nothing about other statements: kExhausted, or
  // kUnavailable for a lock or a statement that took too long.
  virtual Result<Answer> Execute(const std::string& sql,
                                 const std::vector<Parameter>& parameters) = 0;
};

}  // namespace firn
