#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/net/endpoint.h"
#include "server/store/store_tls.h"

namespace firn {

// Address and settings of a Redis server.
struct RedisPlace {
  Endpoint address{"127.0.0.1", 6379};  // unused with sentinels
  std::vector<Endpoint> sentinels{};    // queried in this order for the address of `master`
  std::string master{};
  int database = 0;
  std::string credentials_file{};  // one line, password or user:password; empty: no login
  StoreTls tls{};
  Milliseconds time_limit{1000};  // of connecting, and of each command
};

// A connection to a Redis server that runs scripts. It never reconnects by itself: a failure closes
// it, and the next Open makes a new connection. So an answer always belongs to the last script
// sent.
//
// Owned by one thread. No other server code uses the vendor's library.
class RedisConnection {
 public:
  explicit RedisConnection(RedisPlace place);
  ~RedisConnection();

  bool is_open() const { return client_ != nullptr; }

  // Reads the credentials file, connects and logs in. With sentinels it connects to the server that
  // one of them returns, if that server confirms that it is the master. kUnavailable if the server
  // is unreachable, kDenied if it refuses the login or TLS fails.
  Status Open();
  void Close();

  // Runs `script`, which must outlive this object, on one key. Sends it once. Returns the script's
  // list, with integers as text and nil as empty text. kUnknown if there was no answer; any other
  // failure means that the script failed.
  Result<std::vector<std::string>> Eval(std::string_view script, const std::string& key,
                                        const std::vector<std::string>& arguments);

 private:
  struct Client;  // the library's handle
  struct Reply;

  // Connects to one address.
  Status Connect(const Endpoint& address);
  Status OpenServer(const Endpoint& address);
  Status OpenMaster(const Endpoint& sentinel);
  Result<Endpoint> AskForMaster(const Endpoint& sentinel);
  Result<Reply> Command(const std::vector<std::string_view>& words);
  Status Authenticate();
  Result<std::string> Load(std::string_view script);

  const RedisPlace place_;
  std::unique_ptr<Client> client_;
  Endpoint address_;  // of the last connection
  std::map<std::string_view, std::string>
      digests_;  // digests of the scripts loaded into the server
};

}  // namespace firn
