#include "server/options.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <thread>
#include <utility>

#include <gflags/gflags.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/base/secret_file.h"
#include "common/tag/ini_line.h"
#include "registry/cluster/records.h"
#include "registry/open/open_coordinator.h"
#include "server/front/net/tls.h"
#include "server/loopback.h"
#include "server/node/open_node.h"

DEFINE_string(registry, "",
              "zk://h:p,h:p/firn/<cluster>, dir:///path, or static:<machine id>; empty: the "
              "directory `registry` in the state folder, for a server on loopback alone");
DEFINE_bool(embedded, false,
            "the registry is that directory, although other hosts can reach this server");
DEFINE_bool(static_first_start, false,
            "of static: the machine id was never used before, so no grant file is missing");
DEFINE_bool(static_clock_ok, false,
            "of static: the wall clock is right, although it is more than a day from the last id");
DEFINE_bool(static_adopt, false,
            "of static: the grant file was moved here on purpose, and no other server uses it or "
            "its original; for one start");
DEFINE_string(registry_auth_file, "", "file with user:password for ZooKeeper");
DEFINE_int32(session_timeout_ms, 10'000, "of the session with the registry");
DEFINE_int32(claim_window_ms, 600'000, "how far a machine id is claimed ahead, at most");
DEFINE_int32(probation_ms, 0, "from the claim of a machine id to its first id");
DEFINE_int32(
    restore_probation_ms, 10'000,
    "how long after firn restore no new claim issues, so that whoever it forgot can object");
DEFINE_bool(offline_start, true, "go on inside the last claim while the registry is away");
DEFINE_int32(zk_skew_max_ms, 10'000, "between the wall clock and ZooKeeper's, at a claim");

DEFINE_string(listen, "127.0.0.1:7609", "public address, for Thrift and HTTP");
DEFINE_string(advertise, "", "address at which clients reach this server; empty: --listen");
DEFINE_string(admin_listen, "127.0.0.1:7610",
              "address of the admin side; the one of --listen puts both on one port");
DEFINE_int32(io_threads, 0, "IO threads of the public port; 0: one a core, at most 4");
DEFINE_string(tls_cert, "", "certificate chain of the public port, PEM; empty: no TLS");
DEFINE_string(tls_key, "", "its private key, PEM");
DEFINE_string(tls_client_ca, "", "only clients with a certificate of this authority get in, PEM");

DEFINE_string(application, "firn", "name under which the servers of a service stand together");
DEFINE_int32(rack, 0, "rack part of the machine id");
DEFINE_int32(worker, -1, "worker part of the machine id; -1: any");
DEFINE_string(state_dir, "./firn-state", "folder of what this server remembers");
DEFINE_string(grant_dir, "/dev/shm",
              "memory, a tmpfs, in which the permission to go on after a crash is kept");
DEFINE_string(layout, "", "layout of ids, when the cluster is made; empty: the cluster's, or firn");
DEFINE_string(sequencer, "atomic", "atomic, mutex or spin");
DEFINE_string(sequence_start, "random", "zero, random or carry");
DEFINE_string(clock_policy, "run", "while the wall clock is behind: run or strict");
DEFINE_int32(clock_jump_max_ms, 5'000, "the wall clock is followed at once up to this far ahead");
DEFINE_int32(clock_alarm_ms, 1'000, "how far the wall clock may be off without an alarm");
DEFINE_string(default_tag, "default", "the tag of calls that name none");
DEFINE_string(
    default_strategy, "",
    "when the cluster is made, snowflake: tags that nobody has defined are served; empty: "
    "refused");
DEFINE_string(key_dir, "", "folder with the keys of obfuscated tags");
DEFINE_string(stores_file, "", "INI file of the stores of segment tags beside `registry`");
DEFINE_string(tinyid_token_file, "", "tokens of Tinyid's paths: `<token>=<tag>,<tag>` a line");

DEFINE_string(history_file, "",
              "where tags with the plugin `history` are recorded; empty: nowhere");
DEFINE_int64(history_file_bytes_max, 64 << 20, "of one such file, before it is turned over");
DEFINE_int32(history_files_max, 8, "such files that are kept");

DEFINE_int32(drain_notice_ms, 1500, "from the notice to clients until calls are refused");
DEFINE_int32(drain_refuse_ms, 250, "until connections are closed, unless all have gone");
DEFINE_int32(drain_patience_ms, 5000, "for what is in flight after that");

DEFINE_int32(frame_bytes_max, 64 * 1024, "of a Thrift frame");
DEFINE_int32(string_bytes_max, 1024, "of a string in a Thrift frame");
DEFINE_int32(container_items_max, 16, "of a container in a Thrift frame");
DEFINE_int32(list_ids_max, 100'000, "of one call for a list of ids");
DEFINE_int64(runs_ids_max, 10'000'000, "of one call for runs of ids; a strategy may permit fewer");
DEFINE_int32(http_header_bytes_max, 8 * 1024, "of an HTTP header");
DEFINE_int32(http_body_bytes_max, 64 * 1024, "of an HTTP body");
DEFINE_int32(requests_per_turn_max, 1024, "of one connection, before others get their turn");
DEFINE_int32(output_waiting_bytes_max, 1024 * 1024, "unread answers at which reading stops");
DEFINE_int32(connections_max, 10'000, "of the public port");
DEFINE_int32(spare_descriptors, 16,
             "descriptors left to registry, stores and files: with no more, the public port waits");
DEFINE_int32(idle_ms, 120'000, "after which an idle connection is closed");
DEFINE_int32(half_request_ms, 10'000, "from a request's first byte to its last");
DEFINE_int32(issue_wait_ms, 50, "how long a request may wait for ids");

namespace firn {
namespace {

constexpr int kIoThreadsMax = 4;
constexpr size_t kStoresBytesMax = 1 << 20;

// Takes values out of results, and remembers what was wrong with the others.
class FlagFaults {
 public:
  template <typename T>
  T Take(const char* flag, Result<T> result, T otherwise) {
    if (result.ok()) return *std::move(result);
    Add(flag, result.status().message());
    return otherwise;
  }
  template <typename T>
  T Choose(const char* flag, std::optional<T> choice, const char* choices, T otherwise) {
    if (!choice) Add(flag, std::string("must be one of ") + choices);
    return choice.value_or(otherwise);
  }
  int64_t Range(const char* flag, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most) {
      Add(flag, "is " + std::to_string(value) + ", it may be " + std::to_string(least) + " to " +
                    std::to_string(most));
    }
    return std::clamp(value, least, most);
  }
  void Add(const char* flag, const std::string& what) {
    all_ += std::string(all_.empty() ? "" : "; ") + "--" + flag + " " + what;
  }
  Status status() const { return all_.empty() ? Status() : Invalid(all_); }

 private:
  std::string all_;
};

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

// "<token>=<tag>,<tag>" a line.
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
    std::istringstream tags(*line.text);
    for (std::string tag; std::getline(tags, tag, ',');) tokens[line.key].insert(tag);
  }
  return std::optional(std::move(tokens));
}

// A folder in which files can be read, or made as well.
void CheckFolder(FlagFaults& faults, const char* flag, std::string folder, int mode) {
  if (folder.empty()) folder = ".";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    faults.Add(flag, "wants the folder " + folder + ", which is not there");
  } else if (access(folder.c_str(), mode) != 0) {
    faults.Add(flag, "wants the folder " + folder + ", which this user may not use");
  }
}

HistoryFile::Options ReadHistory(FlagFaults& faults) {
  HistoryFile::Options history{
      .path = FLAGS_history_file,
      .bytes_max = faults.Range("history_file_bytes_max", FLAGS_history_file_bytes_max, 4096,
                                int64_t{1} << 40),
      .files_max =
          static_cast<int>(faults.Range("history_files_max", FLAGS_history_files_max, 1, 10'000))};
  if (!history.path.empty()) {
    // It is made, and turned over, in there.
    CheckFolder(faults, "history_file", std::filesystem::path(history.path).parent_path(),
                W_OK | X_OK);
  }
  return history;
}

front::Limits ReadLimits(FlagFaults& faults) {
  constexpr int64_t kMiB = 1024 * 1024;
  const auto bytes = [&](const char* flag, int64_t value, int64_t least) {
    return static_cast<size_t>(faults.Range(flag, value, least, 16 * kMiB - 1));
  };
  front::Limits limits;
  limits.frame_bytes_max = bytes("frame_bytes_max", FLAGS_frame_bytes_max, 1024);
  limits.string_bytes_max =
      static_cast<int32_t>(bytes("string_bytes_max", FLAGS_string_bytes_max, 64));
  limits.container_items_max = static_cast<int32_t>(
      faults.Range("container_items_max", FLAGS_container_items_max, 1, 1'000'000));
  limits.list_ids_max = faults.Range("list_ids_max", FLAGS_list_ids_max, 1, 1'000'000);
  limits.runs_ids_max = faults.Range("runs_ids_max", FLAGS_runs_ids_max, 1, int64_t{1} << 40);
  limits.http_header_bytes_max = bytes("http_header_bytes_max", FLAGS_http_header_bytes_max, 1024);
  limits.http_body_bytes_max = bytes("http_body_bytes_max", FLAGS_http_body_bytes_max, 1024);
  limits.requests_per_turn_max = static_cast<size_t>(
      faults.Range("requests_per_turn_max", FLAGS_requests_per_turn_max, 1, 1'000'000));
  limits.output_waiting_bytes_max =
      bytes("output_waiting_bytes_max", FLAGS_output_waiting_bytes_max, 1024);
  limits.connections_max =
      static_cast<size_t>(faults.Range("connections_max", FLAGS_connections_max, 1, 1'000'000));
  limits.spare_descriptors =
      static_cast<int>(faults.Range("spare_descriptors", FLAGS_spare_descriptors, 0, 100'000));
  limits.idle_ms = faults.Range("idle_ms", FLAGS_idle_ms, 100, 86'400'000);
  limits.half_request_ms = faults.Range("half_request_ms", FLAGS_half_request_ms, 100, 86'400'000);
  limits.issue_wait_ms = faults.Range("issue_wait_ms", FLAGS_issue_wait_ms, 0, 60'000);
  return limits;
}

std::optional<front::TlsFiles> ReadTls(FlagFaults& faults) {
  if (FLAGS_tls_cert.empty() != FLAGS_tls_key.empty()) {
    faults.Add("tls_cert", "and --tls_key go together");
  }
  if (FLAGS_tls_cert.empty() && !FLAGS_tls_client_ca.empty()) {
    faults.Add("tls_client_ca", "needs --tls_cert and --tls_key");
  }
  if (FLAGS_tls_cert.empty()) return std::nullopt;
  front::TlsFiles files{FLAGS_tls_cert, FLAGS_tls_key, FLAGS_tls_client_ca};
  if (files.key.empty()) return files;
  const Status loaded = front::Tls(files).Load();
  if (!loaded.ok()) faults.Add("tls_cert", "and the files beside it: " + loaded.message());
  return files;
}

void ReadAddresses(FlagFaults& faults, ServerOptions& options) {
  const Endpoint listen = faults.Take("listen", Endpoint::Parse(FLAGS_listen), Endpoint{});
  const Endpoint admin =
      faults.Take("admin_listen", Endpoint::Parse(FLAGS_admin_listen), Endpoint{});
  const front::Limits limits = ReadLimits(faults);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const auto threads = static_cast<int>(faults.Range("io_threads", FLAGS_io_threads, 0, 64));
  options.listen = {.host = listen.host,
                    .port = listen.port,
                    .io_threads = threads != 0 ? threads : std::clamp(cores, 1, kIoThreadsMax),
                    .limits = limits,
                    .tls = ReadTls(faults)};
  if (admin != listen) {
    options.admin =
        front::FrontDoorOptions{.host = admin.host, .port = admin.port, .limits = limits};
    // Operators get in when the public side has taken all that it may.
    options.admin->limits.spare_descriptors /= 2;
  }
  options.advertise = listen;
  if (!FLAGS_advertise.empty()) {
    options.advertise = faults.Take("advertise", Endpoint::Parse(FLAGS_advertise), Endpoint{});
  } else if (listen.host == "0.0.0.0" || listen.host == "::") {
    faults.Add("listen", listen.host + " is no address that clients can reach: give --advertise");
  }
  if (listen.port == 0 || options.advertise.port == 0) {
    faults.Add("listen", "needs a port: the server is known by it");
  }
}

// A registry of one's own is a cluster of one's own: several hosts that each made one, because a
// flag was forgotten, would give the same ids.
void WantRegistry(FlagFaults& faults, const ServerOptions& options) {
  if (!FLAGS_registry.empty()) {
    if (FLAGS_embedded) faults.Add("embedded", "and --registry exclude each other");
    return;
  }
  if (FLAGS_embedded) return;
  const auto want = [&faults](const char* flag, const std::string& host) {
    if (host.empty() || IsLoopback(host)) return false;
    faults.Add("registry", std::string("is not given, and by --") + flag + " others reach this " +
                               "server: name the cluster's, or say --embedded, and this host is " +
                               "a cluster of its own");
    return true;
  };
  if (want("listen", options.listen.host) || want("advertise", options.advertise.host)) return;
  if (options.admin) want("admin_listen", options.admin->host);
}

void ReadPlace(FlagFaults& faults, NodePlace& place) {
  // The registry's directory lies in it by default, and is named by its whole path.
  place.state_dir = std::filesystem::absolute(FLAGS_state_dir).lexically_normal();
  place.registry = FLAGS_registry;
  if (place.registry.empty()) place.registry = "dir://" + place.state_dir + "/registry";
  place.credentials = faults.Take("registry_auth_file", ReadAuth(), std::string());
  place.session_timeout =
      Milliseconds(faults.Range("session_timeout_ms", FLAGS_session_timeout_ms, 1000, 600'000));
  if (!FLAGS_layout.empty()) {
    place.layout = faults.Take("layout", Layout::Parse(FLAGS_layout), Layout::Firn());
  }
  place.static_first_start = FLAGS_static_first_start;
  place.static_clock_ok = FLAGS_static_clock_ok;
  place.static_adopt = FLAGS_static_adopt;
  place.grant_dir = FLAGS_grant_dir;
  if (place.registry.starts_with(kStaticRegistry)) {
    const Layout layout = place.layout.value_or(Layout::Firn());
    faults.Take("registry", ParseStaticRegistry(place.registry, layout), MachineId());
  }
}

void ReadClaim(FlagFaults& faults, ClaimOptions& claim) {
  const auto span = [&faults](const char* flag, int64_t value, int64_t least, int64_t most) {
    return Milliseconds(faults.Range(flag, value, least, most));
  };
  // How a machine id is split is the cluster's affair, which is asked later.
  constexpr int64_t kPartMax = (1 << Layout::kMachineBitsMax) - 1;
  claim.rack = static_cast<uint32_t>(faults.Range("rack", FLAGS_rack, 0, kPartMax));
  const int64_t worker = faults.Range("worker", FLAGS_worker, -1, kPartMax);
  if (worker >= 0) claim.worker = static_cast<uint32_t>(worker);
  claim.window = span("claim_window_ms", FLAGS_claim_window_ms, 1'000, kPoisonAhead.count() / 4);
  claim.probation = span("probation_ms", FLAGS_probation_ms, 0, 600'000);
  claim.restore_probation = span("restore_probation_ms", FLAGS_restore_probation_ms, 0, 600'000);
  claim.skew_max = span("zk_skew_max_ms", FLAGS_zk_skew_max_ms, 1, 600'000);
  claim.offline_start = FLAGS_offline_start;
}

void ReadIdClock(FlagFaults& faults, IdClockOptions& id_clock) {
  if (FLAGS_clock_policy == "strict") {
    id_clock.policy = ClockPolicy::kStrict;
  } else if (FLAGS_clock_policy != "run") {
    faults.Add("clock_policy", "must be one of run, strict");
  }
  id_clock.jump_max =
      Milliseconds(faults.Range("clock_jump_max_ms", FLAGS_clock_jump_max_ms, 0, 3'600'000));
  id_clock.alarm =
      Milliseconds(faults.Range("clock_alarm_ms", FLAGS_clock_alarm_ms, 1, 86'400'000));
}

void ReadNode(FlagFaults& faults, ServerOptions& options) {
  IssuingNodeOptions& node = options.node;
  ReadClaim(faults, node.claim);
  ReadIdClock(faults, node.id_clock);
  node.snowflake.sequencer.kind = faults.Choose("sequencer", ParseSequencerKind(FLAGS_sequencer),
                                                "atomic, mutex, spin", SequencerKind::kAtomic);
  node.snowflake.sequencer.start =
      faults.Choose("sequence_start", ParseSequenceStart(FLAGS_sequence_start),
                    "zero, random, carry", SequenceStart::kRandom);
  node.default_tag = FLAGS_default_tag;
  options.place.default_strategy = FLAGS_default_strategy;
  if (!IsDefaultStrategy(FLAGS_default_strategy)) {
    faults.Add("default_strategy", "must be snowflake or empty");
  }
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

Result<ServerOptions> ReadServerOptions() {
  FlagFaults faults;
  const auto nobody = OwnerName::Make("firn", 1, "127.0.0.1");
  ServerOptions options{.place = {},
                        .listen = {},
                        .advertise = {},
                        .owner = nobody.value_or(*nobody),
                        .application = FLAGS_application,
                        .key_dir = FLAGS_key_dir};
  if (!FLAGS_key_dir.empty()) CheckFolder(faults, "key_dir", FLAGS_key_dir, R_OK | X_OK);
  options.tinyid_tokens =
      faults.Take("tinyid_token_file", ReadTokens(), std::optional<TinyidTokens>());
  options.stores = faults.Take("stores_file", ReadStores(), StoresIni());
  ReadPlace(faults, options.place);
  options.credentials_file = FLAGS_registry_auth_file;
  ReadNode(faults, options);
  ReadAddresses(faults, options);
  WantRegistry(faults, options);
  options.history = ReadHistory(faults);
  options.drain_notice =
      Milliseconds(faults.Range("drain_notice_ms", FLAGS_drain_notice_ms, 0, 600'000));
  options.drain_refuse =
      Milliseconds(faults.Range("drain_refuse_ms", FLAGS_drain_refuse_ms, 0, 600'000));
  options.drain_patience =
      Milliseconds(faults.Range("drain_patience_ms", FLAGS_drain_patience_ms, 0, 600'000));
  // Known by an address that is a number: the advertised one, or the one it listens on.
  auto owner = OwnerName::Make(FLAGS_application, options.advertise.port, options.advertise.host);
  if (!owner.ok()) {
    owner = OwnerName::Make(FLAGS_application, options.advertise.port, options.listen.host);
  }
  options.owner = faults.Take("application", std::move(owner), options.owner);
  options.node.claim.identity = {.owner = options.owner.text(),
                                 .endpoint = options.advertise.ToString(),
                                 .host = HostName(),
                                 .pid = getpid(),
                                 .build = ServerBuild()};
  FIRN_TRY(faults.status());
  return options;
}

std::string ServerVersion() { return FIRN_VERSION; }

std::string ServerBuild() { return "firn-server " FIRN_VERSION ", g++ " __VERSION__; }

}  // namespace firn
