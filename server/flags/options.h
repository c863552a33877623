#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/base/status.h"
#include "common/id/layout.h"
#include "common/log/log.h"
#include "common/net/endpoint.h"
#include "registry/state/owner.h"
#include "server/flags/stores_ini.h"
#include "server/front/dubbo/dubbo_protocol.h"
#include "server/front/net/front_door.h"
#include "server/node/issuing_node.h"
#include "server/node/open_node.h"
#include "server/plugins/history_file.h"

namespace firn {

// The tags that each token permits on Tinyid's paths.
using TinyidTokens = std::map<std::string, std::set<std::string, std::less<>>, std::less<>>;

enum class LogFormat { kText, kJson };

struct LogStyle {
  Severity least = Severity::kInfo;
  LogFormat format = LogFormat::kText;
};

// Returns --log_level and --log_format. Invalid values, which ReadServerOptions refuses, yield the
// defaults.
LogStyle ChosenLogStyle();

// All options of firn-server, read and checked.
struct ServerOptions {
  NodePlace place;
  std::string credentials_file{};  // path of the registry's credentials, for messages
  front::FrontDoorOptions listen;
  std::optional<front::FrontDoorOptions> admin{};  // empty: the public address
  std::vector<std::string> admin_hosts{};          // host names accepted by the admin port
  std::vector<std::string> http_hosts{};  // host names that the public port accepts; empty: all
  bool admin_is_local = true;             // only this host can reach the admin port
  std::string rights_file{};              // file with the rights of clients, by name
  bool redis = true;                      // serve the Redis protocol
  bool redis_incr_64bit = false;          // INCR returns numbers of 2^53 and above
  std::string redis_auth_file{};          // users of the Redis protocol; empty: no login
  Endpoint advertise;                     // address at which clients reach this server
  OwnerName owner;
  std::string application = "firn";

  std::string key_dir{};  // folder of the keys of obfuscated tags; empty: no keys
  std::optional<TinyidTokens> tinyid_tokens{};  // empty: no token is required
  HistoryFile::Options history{};               // an empty path: no history
  StoresIni stores{};                           // stores of segment tags besides `registry`
  IssuingNodeOptions node{};
  std::optional<front::VestaOrder> dubbo{};  // empty: no Dubbo
  uint32_t leases_max = 100;                 // maximum leases of machine ids; 0: none
  Milliseconds drain_notice{1500};
  Milliseconds drain_refuse{250};
  Milliseconds drain_patience{5000};
};

// Returns the options that the flags set. kInvalid names every fault at once.
Result<ServerOptions> ReadServerOptions();

// Shown by `--version` and the status.
std::string ServerVersion();
std::string ServerBuild();

}  // namespace firn
