#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/net/endpoint.h"
#include "server/store/store_tls.h"

namespace firn {

struct MongoError;

// Address and settings of a MongoDB deployment.
struct MongoPlace {
  std::vector<Endpoint> addresses{};  // of a replica set's members, or of one server
  std::string replica_set{};          // empty: a direct connection to one server
  std::string database{};
  std::string collection = "firn_tag";
  std::string credentials_file{};  // one line user:password; empty: no login
  std::string auth_database = "admin";
  StoreTls tls{};                 // cert_file contains the key, too
  Milliseconds time_limit{2000};  // of connecting, and of each command

  std::string ToString() const;  // the addresses
};

// A connection to the primary, for one collection whose documents are counters:
//
//     {_id: tag, max: NumberLong, step: NumberLong, cluster: uuid, timestamp: Date}
//
// Each command is sent once, to the primary, with a time limit on the server (maxTimeMS). A write
// counts once a majority has acknowledged it; any other reply is kUnknown. A failure that leaves
// the connection's state in doubt closes the connection.
//
// Owned by one thread. No other server code uses the vendor's library.
class MongoConnection {
 public:
  static constexpr Milliseconds kGrace{1000};  // the client's timeout exceeds the server's by this

  explicit MongoConnection(MongoPlace place);
  ~MongoConnection();

  bool is_open() const { return client_ != nullptr; }

  // Reads the credentials file, connects and logs in. kUnavailable if there is no primary or it
  // does not answer; kDenied if it refuses the login or TLS fails.
  Status Open();
  void Close();

  struct Counter {
    int64_t max = 0;
    int64_t step = 0;
    std::string cluster{};  // uuid of the cluster that owns it; empty: not marked
  };
  // Codes of all commands: kUnavailable: not executed; kUnknown: perhaps executed; kDenied: a
  // privilege is missing.

  // Returns nullopt if there is no document; kCorrupt if a field is not a whole number.
  Result<std::optional<Counter>> Read(const std::string& tag);
  // Does nothing if the document exists.
  Status Insert(const std::string& tag, Counter counter);
  // Raises `max` to `least` if it is lower.
  Status Raise(const std::string& tag, int64_t least);
  // Adds `size` to `max` and marks the document as the cluster's. Returns the changed document.
  // Returns nullopt if `max` is not between `least` and `ceiling`, `step` is below 1, or the
  // document is marked for another cluster.
  Result<std::optional<Counter>> Move(const std::string& tag, int64_t least, int64_t ceiling,
                                      int64_t size, const std::string& cluster);

 private:
  struct Client;  // the library's handle
  struct Document;

  // Runs a command; `writes` adds the write concern.
  Result<Document> Run(Document&& command, bool writes);
  Status Fail(const Document& reply, const MongoError& error);
  // Returns the failure if `message` is about TLS. `selected`: whether a server was selected for a
  // command.
  std::optional<Status> FailureOfTls(const std::string& message, bool selected) const;

  const MongoPlace place_;
  std::unique_ptr<Client> client_;
};

}  // namespace firn
