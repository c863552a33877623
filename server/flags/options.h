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

// The tags that each token of Tinyid's paths opens.
using TinyidTokens = std::map<std::string, std::set<std::string, std::less<>>, std::less<>>;

enum class LogFormat { kText, kJson };

struct LogStyle {
  Severity least = Severity::kInfo;
  LogFormat format = LogFormat::kText;
};

// Returns --log_level and --log_format. Invalid values, which ReadServerOptions refuses, yield the
// defaults.
LogStyle ChosenLogStyle();

// Everything that firn-server is configured with, read and checked.
struct ServerOptions {
  NodePlace place;
  std::string credentials_file{};  // path of the registry's credentials, for messages
  front::FrontDoorOptions listen;
  std::optional<front::FrontDoorOptions> admin{};  // empty: the same address
  std::vector<std::string> admin_hosts{};          // host names that the admin side answers to
  std::vector<std::string> http_hosts{};           // the same of the public side; empty: all
  bool admin_is_local = true;                      // only this host can reach it
  std::string rights_file{};                       // rights of clients, by their names
  bool redis = true;                               // serve the Redis protocol
  bool redis_incr_64bit = false;                   // INCR returns numbers of 2^53 and above
  std::string redis_auth_file{};                   // its users; empty: no login is needed
  Endpoint advertise;                              // where clients reach it
  OwnerName owner;
  std::string application = "firn";

  std::string key_dir{};  // folder of the keys of obfuscated tags; empty: no keys
  std::optional<TinyidTokens> tinyid_tokens{};  // empty: no token is required
  HistoryFile::Options history{};               // an empty path: none is written
  StoresIni stores{};                           // of segment tags, beside `registry`
  IssuingNodeOptions node{};
  std::optional<front::VestaOrder> dubbo{};  // empty: no Dubbo
  uint32_t leases_max = 100;                 // of machine ids; 0: none
  Milliseconds drain_notice{1500};
  Milliseconds drain_refuse{250};
  Milliseconds drain_patience{5000};
};

// Reads the flags of the command line. kInvalid names every fault at once.
Result<ServerOptions> ReadServerOptions();

// What `--version` and the status show.
std::string ServerVersion();
std::string ServerBuild();

}  // namespace firn
