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

// How to reach a Redis server.
struct RedisPlace {
  Endpoint address{"127.0.0.1", 6379};  // unused with sentinels
  std::vector<Endpoint> sentinels{};    // asked in this order for the address of `master`
  std::string master{};
  int database = 0;
  std::string credentials_file{};  // one line, password or user:password; empty: no login
  StoreTls tls{};
  Milliseconds time_limit{1000};  // of connecting, and of each command
};

// A connection to a Redis server that runs scripts. It never reconnects by itself: after any
// failure it is closed, and the next Open makes a new one, so that an answer always belongs to the
// script that was just sent.
//
// Owned by one thread. The only code that knows the vendor's library.
class RedisConnection {
 public:
  explicit RedisConnection(RedisPlace place);
  ~RedisConnection();

  bool is_open() const { return client_ != nullptr; }

  // Connects and logs in; with sentinels, to the server that one of them names, if that server says
  // itself that it is the master. Credentials are re-read from the file. kUnavailable if the server
  // cannot be reached, kDenied if it refuses the login or TLS fails.
  Status Open();
  void Close();

  // Runs `script`, which must outlive this object, on one key; it is sent once. Returns the list of
  // texts and integers, all as text; nil is empty. kUnknown if no answer came; any other failure
  // means that the server reports the script as failed.
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
  Endpoint address_;                                 // that was connected to last
  std::map<std::string_view, std::string> digests_;  // of scripts that the server has been given
};

}  // namespace firn
