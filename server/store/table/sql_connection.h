#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/base/status.h"

namespace firn {

// A connection to a database server. It never reconnects by itself: after any failure that leaves
// it in doubt it is closed, and the next Open makes a new one, so that an answer always belongs to
// the statement that was just sent.
//
// Owned by one thread. Each database has one class that implements this interface, the only code
// that knows the vendor's library.
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

  // Connects. Each statement is a transaction of its own; values that do not fit are refused.
  // Re-reads the credentials, so that they can be changed while the program runs. kUnavailable if
  // the server is unreachable or does not accept writes; kDenied if it refuses the login.
  virtual Status Open() = 0;
  virtual void Close() = 0;

  // Whether the last failure was that the server was not reached or did not answer. An error that
  // the server reports does not count, unless it says that it is shutting down or starting.
  virtual bool away() const = 0;

  // Executes one statement. Parameters never become part of its text.
  //
  // kUnknown, and closed, if no answer came; any other failure means that nothing was done. Still
  // open after a failure that does not concern other statements: kExhausted, or kUnavailable for a
  // lock or a statement that took too long.
  virtual Result<Answer> Execute(const std::string& sql,
                                 const std::vector<Parameter>& parameters) = 0;
};

}  // namespace firn
