#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/base/status.h"

namespace firn {

// A connection to a database server. It never reconnects by itself: a failure that leaves its state
// in doubt closes it, and the next Open makes a new connection. So an answer always belongs to the
// last statement sent.
//
// Owned by one thread. Each kind of database has one class that implements this interface, and only
// that class uses the vendor's library.
class SqlConnection {
 public:
  using Parameter = std::variant<int64_t, std::string>;
  using Row = std::vector<std::string>;  // numbers in decimal; NULL is empty

  struct Answer {
    std::vector<Row> rows{};
    uint64_t affected = 0;   // rows changed by the statement
    uint64_t insert_id = 0;  // MySQL's LAST_INSERT_ID of this statement
  };
  static constexpr size_t kRowsMax = 100'000;

  virtual ~SqlConnection() = default;

  virtual bool is_open() const = 0;

  // Connects. Re-reads the credentials, so that they can change while the program runs. Each
  // statement is a separate transaction; values that do not fit are refused. kUnavailable if the
  // server is unreachable or does not accept writes; kDenied if it refuses the login.
  virtual Status Open() = 0;
  virtual void Close() = 0;

  // Returns whether the last failure was an unreachable server or a missing answer. An error
  // reported by the server does not count, unless it means that the server is shutting down or
  // starting.
  virtual bool away() const = 0;

  // Executes one statement. Parameters never become part of its text.
  //
  // kUnknown if there was no answer; then the connection is closed. Any other failure means that
  // the statement had no effect. The connection stays open after a failure that does not concern
  // other statements: kExhausted, or kUnavailable for a lock or a statement that timed out.
  virtual Result<Answer> Execute(const std::string& sql,
                                 const std::vector<Parameter>& parameters) = 0;
};

}  // namespace firn
