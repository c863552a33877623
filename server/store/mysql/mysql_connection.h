#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/base/endpoint.h"
#include "common/base/status.h"
#include "common/base/units.h"
#include "common/time/clock.h"

namespace firn {

// How to reach a MySQL or MariaDB server.
struct MysqlPlace {
  Endpoint address{"127.0.0.1", 3306};
  std::string database{};
  std::string credentials_file{};  // one line user:password, as common/base/secret_file.h wants it
  Milliseconds time_limit{2000};  // of connecting, and of each statement; whole seconds, rounded up
};

// A connection to a server, and its prepared statements. It never comes back by itself: after any
// failure that leaves it in doubt it is closed, and the next Open makes a new one, so that an
// answer always belongs to the statement that was just sent.
//
// Owned by one thread. The only code that knows the vendor's library.
class MysqlConnection {
 public:
  using Parameter = std::variant<int64_t, std::string>;
  using Row = std::vector<std::string>;  // numbers in decimal; NULL is empty

  struct Answer {
    std::vector<Row> rows;
    uint64_t affected = 0;   // rows that have changed
    uint64_t insert_id = 0;  // LAST_INSERT_ID of this statement
  };
  static constexpr size_t kRowsMax = 100'000;
  static constexpr size_t kFieldBytesMax = 1024;

  explicit MysqlConnection(MysqlPlace place);
  ~MysqlConnection();

  bool is_open() const { return client_ != nullptr; }

  // Connects, each statement a transaction of its own, values that do not fit refused. Reads the
  // credentials anew, so that they may be changed under a running program. kUnavailable when the
  // server is away, kDenied when it does not let us in.
  Status Open();
  void Close();

  // Executes one statement. Parameters never become part of its text. kUnknown, and closed, when no
  // answer came; any other failure is the server's word that nothing was done.
  Result<Answer> Execute(const std::string& sql, const std::vector<Parameter>& parameters);

 private:
  struct Client;     // the library's handles
  struct Statement;  // a prepared one

  Result<Statement*> Prepare(const std::string& sql);
  Status Fail(unsigned int number, const std::string& text);

  const MysqlPlace place_;
  std::unique_ptr<Client> client_;
  std::map<std::string, std::unique_ptr<Statement>> statements_;
};

}  // namespace firn
