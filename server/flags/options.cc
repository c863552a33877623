#include "server/flags/options.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include <gflags/gflags.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/base/quote.h"
#include "common/base/secret_file.h"
#include "common/net/address.h"
#include "common/net/endpoint.h"
#include "common/net/ip_address.h"
#include "common/tag/ini_line.h"
#include "registry/cluster/records.h"
#include "registry/open/open_coordinator.h"
#include "server/flags/comma_parts.h"
#include "server/flags/flag_faults.h"
#include "server/flags/flag_table.h"
#include "server/front/desk/tag_rights.h"
#include "server/front/redis/redis_logins.h"
#include "server/node/open_node.h"

// --- flags ---------------------------------------------------------------------------------------

namespace firn {
namespace {

constexpr int64_t kDayMs = 86'400'000;
// The cluster's rack bits, which are read later, decide which values exist.
constexpr int64_t kMachinePartMax = (1 << Layout::kMachineBitsMax) - 1;

ServerOptions Defaults() {
  const auto nobody = OwnerName::Make("firn", 1, "127.0.0.1");
  return {.place = {}, .listen = {}, .advertise = {}, .owner = nobody.value_or(*nobody)};
}

template <typename Number>
Number Plain(Number value) {
  return value;
}
int64_t Plain(Milliseconds value) { return value.count(); }

}  // namespace
}  // namespace firn

#define FIRN_NONE(...)
#define FIRN_NUMBER(type, flag, field, least, most, help) \
  DEFINE_##type(flag, static_cast<gflags::type>(firn::Plain(firn::Defaults().field)), help);
#define FIRN_LIMIT(type, flag, least, most, help) \
  FIRN_NUMBER(type, flag, listen.limits.flag, least, most, help)
#define FIRN_SWITCH(flag, field, help) DEFINE_bool(flag, firn::Defaults().field, help);
#define FIRN_TEXT(flag, field, help) DEFINE_string(flag, firn::Defaults().field, help);
#define FIRN_READ(type, flag, value, help) DEFINE_##type(flag, value, help);
FIRN_FLAGS(FIRN_NONE, FIRN_NUMBER, FIRN_LIMIT, FIRN_SWITCH, FIRN_TEXT, FIRN_READ, FIRN_NONE)
#undef FIRN_NUMBER
#undef FIRN_SWITCH
#undef FIRN_TEXT
#undef FIRN_READ

namespace firn {
namespace {

constexpr int kIoThreadsMax = 4;
constexpr size_t kStoresBytesMax = 1 << 20;

Result<std::string> ReadAuth() {
  if (FLAGS_registry_auth_file.empty()) return std::string();
  FIRN_ASSIGN(const std::string content, ReadSecretFile(FLAGS_registry_auth_file));
  return ParseCredentials(content);
}

Result<StoresIni> ReadStores() {
  if (FLAGS_stores_file.empty()) return StoresIni();
  FIRN_ASSIGN(const std::string content, ReadRegularFile(FLAGS_stores_file, kStoresBytesMax));
  StoresIni ini = ParseStoresIni(content);
  FIRN_TRY(ini.status().WithContext(FLAGS_stores_file));
  return ini;
}

// Each line is "<token>=<tag>,<tag>".
Result<std::optional<TinyidTokens>> ReadTokens() {
  if (FLAGS_tinyid_token_file.empty()) return std::optional<TinyidTokens>();
  FIRN_ASSIGN(const std::string content, ReadSecretFile(FLAGS_tinyid_token_file));
  TinyidTokens tokens;
  std::string_view rest = content;
  for (int number = 1; !rest.empty(); ++number) {
    const IniLine line = ReadIniLine(TakeIniLine(rest));
    if (line.kind == IniLine::Kind::kNothing) continue;
    if (line.kind != IniLine::Kind::kSetting || !line.text.ok()) {
      return Invalid(
          Cat(FLAGS_tinyid_token_file, ": line ", number, " is not <token>=<tag>,<tag>"));
    }
    for (const std::string& tag : CommaParts(*line.text)) tokens[line.key].insert(tag);
  }
  return std::optional(std::move(tokens));
}

// Checks that a folder can be accessed with `mode`.
void CheckFolder(FlagFaults& faults, const char* flag, std::string folder, int mode) {
  if (folder.empty()) folder = ".";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    faults.Add(flag, "requires the folder " + folder + ", which does not exist");
  } else if (access(folder.c_str(), mode) != 0) {
    faults.Add(flag, "requires the folder " + folder + ", which this user cannot access");
  }
}

template <typename Number>
void Set(Number& field, int64_t value) {
  field = static_cast<Number>(value);
}

// Reads the flags that the table copies.
void ReadPlain(FlagFaults& faults, ServerOptions& options) {
#define FIRN_NUMBER(type, flag, field, least, most, help) \
  Set(options.field, faults.Range(#flag, FLAGS_##flag, least, most));
#define FIRN_COPY(flag, field, help) options.field = FLAGS_##flag;
  FIRN_FLAGS(FIRN_NONE, FIRN_NUMBER, FIRN_LIMIT, FIRN_COPY, FIRN_COPY, FIRN_NONE, FIRN_NONE)
#undef FIRN_NUMBER
#undef FIRN_LIMIT
#undef FIRN_COPY
#undef FIRN_NONE
}

// Reads the three TLS flags of one port; `side` is their prefix.
std::optional<front::TlsFiles> ReadTls(FlagFaults& faults, const std::string& side,
                                       const front::TlsFiles& files) {
  const std::string cert = side + "tls_cert", key = side + "tls_key";
  if (files.cert.empty() != files.key.empty()) {
    faults.Add(cert.c_str(), Cat("and --", key, " go together"));
  }
  if (files.cert.empty() && !files.client_ca.empty()) {
    faults.Add((side + "tls_client_ca").c_str(), Cat("needs --", cert, " and --", key));
  }
  if (files.cert.empty()) return std::nullopt;
  if (files.key.empty()) return files;
  const Status loaded = front::CheckTls(files);
  if (!loaded.ok())
    faults.Add(cert.c_str(), "or a file that belongs to it cannot be used: " + loaded.message());
  return files;
}

void ReadEncryption(FlagFaults& faults, ServerOptions& options) {
  options.listen.tls = ReadTls(faults, "", {FLAGS_tls_cert, FLAGS_tls_key, FLAGS_tls_client_ca});
  const auto admin = ReadTls(
      faults, "admin_", {FLAGS_admin_tls_cert, FLAGS_admin_tls_key, FLAGS_admin_tls_client_ca});
  if (options.admin) options.admin->tls = admin;
  if (admin && !options.admin) faults.Add("admin_tls_cert", "needs an --admin_listen of its own");
}

// Checks the rights and the logins. Without certificates or logins, clients have no names, so the
// rights would refuse all of them.
void ReadRights(FlagFaults& faults, ServerOptions& options) {
  if (!options.redis_auth_file.empty()) {
    if (!options.redis) faults.Add("redis_auth_file", "needs --redis");
    const Status read = front::RedisLogins(options.redis_auth_file).Load();
    if (!read.ok()) faults.Add("redis_auth_file", read.message());
  }
  if (options.rights_file.empty()) return;
  if (FLAGS_tls_client_ca.empty() && options.redis_auth_file.empty()) {
    faults.Add("rights_file", "needs --tls_client_ca or --redis_auth_file");
  }
  const Status read = front::TagRights(options.rights_file).Load();
  if (!read.ok()) faults.Add("rights_file", read.message());
}

// Returns loopback for an invalid address, so that dependent checks do not report it a second time.
Endpoint ReadListen(FlagFaults& faults, const char* flag, const std::string& text) {
  Endpoint read = faults.Take(flag, Endpoint::Parse(text), Endpoint{"127.0.0.1", 1});
  if (IsIpAddress(read.host)) return read;
  faults.Add(flag, Quoted(read.host) + " is a name: give an address of this host, or 0.0.0.0");
  return {"127.0.0.1", read.port};
}

std::optional<mode_t> ParseMode(std::string_view text) {
  if (text.empty() || text.size() > 4) return std::nullopt;
  mode_t mode = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '7') return std::nullopt;
    mode = mode * 8 + static_cast<mode_t>(digit - '0');
  }
  return mode <= 0777 ? std::optional(mode) : std::nullopt;
}

void ReadUnixSocket(FlagFaults& faults, front::FrontDoorOptions& listen) {
  const std::optional<mode_t> mode = ParseMode(FLAGS_listen_unix_mode);
  if (!mode) faults.Add("listen_unix_mode", "must be octal permissions from 0000 to 0777");
  listen.unix_mode = mode.value_or(listen.unix_mode);
  listen.unix_path = FLAGS_listen_unix;
  if (listen.unix_path.empty()) return;
  if (!UnixAddress(listen.unix_path).known()) {
    faults.Add("listen_unix",
               Cat("is too long: the path of a Unix socket has at most ", kUnixPathMax, " bytes"));
  }
  // The socket file is created and removed there.
  CheckFolder(faults, "listen_unix", std::filesystem::path(listen.unix_path).parent_path(),
              W_OK | X_OK);
}

void ReadAddresses(FlagFaults& faults, ServerOptions& options) {
  const Endpoint listen = ReadListen(faults, "listen", FLAGS_listen);
  const Endpoint admin = ReadListen(faults, "admin_listen", FLAGS_admin_listen);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const auto threads = static_cast<int>(faults.Range("io_threads", FLAGS_io_threads, 0, 64));
  options.listen.host = listen.host;
  options.listen.port = listen.port;
  options.listen.io_threads = threads != 0 ? threads : std::clamp(cores, 1, kIoThreadsMax);
  ReadUnixSocket(faults, options.listen);
  options.admin_is_local = IsLoopback(admin.host);
  options.admin_hosts = CommaParts(FLAGS_admin_hosts);
  options.http_hosts = CommaParts(FLAGS_http_hosts);
  if (admin != listen) {
    options.admin = front::FrontDoorOptions{
        .host = admin.host, .port = admin.port, .limits = options.listen.limits};
    // Operators can connect even if the public side has used all of its descriptors.
    options.admin->limits.spare_descriptors /= 2;
  }
  ReadEncryption(faults, options);
  ReadRights(faults, options);
  options.advertise = listen;
  if (!FLAGS_advertise.empty()) {
    options.advertise = faults.Take("advertise", Endpoint::Parse(FLAGS_advertise), listen);
  }
  if (IsAnyAddress(options.advertise.host)) {
    faults.Add(
        FLAGS_advertise.empty() ? "listen" : "advertise",
        options.advertise.host +
            " is not an address that clients can connect to; set --advertise to one that is");
  }
  if (listen.port == 0 || options.advertise.port == 0) {
    faults.Add("listen", "requires a port other than 0: the address identifies the server");
  }
}

// Requires --registry if other hosts can reach this server: several hosts that each created their
// own registry, because the flag was forgotten, would issue the same ids.
void WantRegistry(FlagFaults& faults, const ServerOptions& options) {
  if (!FLAGS_registry.empty()) {
    if (FLAGS_embedded) faults.Add("embedded", "and --registry exclude each other");
    return;
  }
  if (FLAGS_embedded) return;
  const auto want = [&faults](const char* flag, const std::string& host) {
    if (host.empty() || IsLoopback(host)) return false;
    faults.Add("registry",
               Cat("is required, because other hosts reach this server through --", flag,
                   "; set it to the cluster's registry, or set --embedded to run this host as a ",
                   "cluster of its own"));
    return true;
  };
  if (want("listen", options.listen.host) || want("advertise", options.advertise.host)) return;
  if (options.admin) want("admin_listen", options.admin->host);
}

void ReadPlace(FlagFaults& faults, NodePlace& place) {
  // The directory registry is in this folder by default, and its URL contains the absolute path.
  place.state_dir = std::filesystem::absolute(FLAGS_state_dir).lexically_normal();
  place.registry = FLAGS_registry;
  if (place.registry.empty()) place.registry = "dir://" + place.state_dir + "/registry";
  place.credentials = faults.Take("registry_auth_file", ReadAuth(), std::string());
  if (!FLAGS_layout.empty()) {
    place.layout = faults.Take("layout", Layout::Parse(FLAGS_layout), Layout::Firn());
  }
  if (place.registry.starts_with(kStaticRegistry)) {
    const Layout layout = place.layout.value_or(Layout::Firn());
    faults.Take("registry", ParseStaticRegistry(place.registry, layout), MachineId());
  }
}

void ReadNode(FlagFaults& faults, IssuingNodeOptions& node) {
  const int64_t worker = faults.Range("worker", FLAGS_worker, -1, kMachinePartMax);
  if (worker >= 0) node.claim.worker = static_cast<uint32_t>(worker);
  if (FLAGS_clock_policy == "strict") {
    node.id_clock.policy = ClockPolicy::kStrict;
  } else if (FLAGS_clock_policy != "run") {
    faults.Add("clock_policy", "must be one of run, strict");
  }
  node.snowflake.sequencer.kind = faults.Choose("sequencer", ParseSequencerKind(FLAGS_sequencer),
                                                "atomic, mutex, spin", SequencerKind::kAtomic);
  node.snowflake.sequencer.start =
      faults.Choose("sequence_start", ParseSequenceStart(FLAGS_sequence_start),
                    "zero, random, carry", SequenceStart::kRandom);
}

std::optional<front::VestaOrder> ParseVestaOrder(std::string_view text) {
  if (text == "time_first") return front::VestaOrder::kTimeFirst;
  if (text == "machine_first") return front::VestaOrder::kMachineFirst;
  return std::nullopt;
}

void ReadDubbo(FlagFaults& faults, ServerOptions& options) {
  const front::VestaOrder order =
      faults.Choose("dubbo_make_id_order", ParseVestaOrder(FLAGS_dubbo_make_id_order),
                    "time_first, machine_first", front::VestaOrder::kTimeFirst);
  if (!FLAGS_dubbo) return;
  options.dubbo = order;
  if (options.place.registry.starts_with("zk://")) return;
  faults.Add("dubbo",
             "requires a registry in ZooKeeper, where consumers look for servers; set "
             "--registry=zk://host:port/firn/<cluster>, or remove --dubbo");
}

std::optional<Severity> ParseLevel(std::string_view name) {
  if (name == "info") return Severity::kInfo;
  if (name == "warning") return Severity::kWarning;
  if (name == "error") return Severity::kError;
  return std::nullopt;
}

std::optional<LogFormat> ParseLogFormat(std::string_view name) {
  if (name == "text") return LogFormat::kText;
  if (name == "json") return LogFormat::kJson;
  return std::nullopt;
}

void CheckLogStyle(FlagFaults& faults) {
  faults.Choose("log_level", ParseLevel(FLAGS_log_level), "info, warning, error", Severity::kInfo);
  faults.Choose("log_format", ParseLogFormat(FLAGS_log_format), "text, json", LogFormat::kText);
}

}  // namespace

LogStyle ChosenLogStyle() {
  return {.least = ParseLevel(FLAGS_log_level).value_or(Severity::kInfo),
          .format = ParseLogFormat(FLAGS_log_format).value_or(LogFormat::kText)};
}

Result<ServerOptions> ReadServerOptions() {
  FlagFaults faults;
  CheckLogStyle(faults);
  ServerOptions options = Defaults();
  ReadPlain(faults, options);
  if (!options.key_dir.empty()) CheckFolder(faults, "key_dir", options.key_dir, R_OK | X_OK);
  options.tinyid_tokens =
      faults.Take("tinyid_token_file", ReadTokens(), std::optional<TinyidTokens>());
  options.stores = faults.Take("stores_file", ReadStores(), StoresIni());
  ReadPlace(faults, options.place);
  if (!IsDefaultStrategy(options.place.default_strategy)) {
    faults.Add("default_strategy", "must be snowflake or empty");
  }
  ReadNode(faults, options.node);
  if (const Status fits = CheckMachineIds(options.place, options.node.claim); !fits.ok()) {
    faults.Add("machine_ids", fits.message());
  }
  ReadAddresses(faults, options);
  ReadDubbo(faults, options);
  WantRegistry(faults, options);
  if (!options.history.path.empty()) {
    // The file is created and rotated there.
    CheckFolder(faults, "history_file", std::filesystem::path(options.history.path).parent_path(),
                W_OK | X_OK);
  }
  // The owner's name contains an IP address: the advertised one, or that of --listen.
  auto owner = OwnerName::Make(FLAGS_application, options.advertise.port, options.advertise.host);
  if (!owner.ok()) {
    owner = OwnerName::Make(FLAGS_application, options.advertise.port, options.listen.host);
  }
  options.owner = faults.Take("application", std::move(owner), options.owner);
  if (!FLAGS_state_name.empty()) {
    options.owner =
        faults.Take("state_name", options.owner.WithFilesOf(FLAGS_state_name), options.owner);
  }
  options.node.claim.identity = {.owner = options.owner.text(),
                                 .endpoint = options.advertise.ToString(),
                                 .host = HostName(),
                                 .pid = getpid(),
                                 .build = ServerBuild()};
  FIRN_TRY(std::move(faults).ToStatus());
  return options;
}

std::string ServerVersion() { return FIRN_VERSION; }

std::string ServerBuild() { return "firn-server " FIRN_VERSION ", g++ " __VERSION__; }

}  // namespace firn
