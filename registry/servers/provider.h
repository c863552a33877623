#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/server_phase.h"
#include "registry/cluster/records.h"

namespace firn {

// Servers as clients discover them, in Dubbo's tree:
//
//   /firn.IdService/providers/<url>               ephemeral; name: identity, data: state
//   /firn.IdService/configurators/<host:port>     persistent; the operator's settings for it
//
// Values and their node forms; thread-compatible. A node that does not parse is refused with a
// reason, so that a foreign node hides only itself.

inline constexpr std::string_view kServicePath = "/firn.IdService";
inline constexpr std::string_view kProvidersPath = "/firn.IdService/providers";
inline constexpr std::string_view kConfiguratorsPath = "/firn.IdService/configurators";

// The identity of a server; fixed for the life of its process.
struct Provider {
  std::string address;  // host:port that clients connect to
  std::string application{};
  uint32_t rack = 0;
  bool tls = false;  // calls to it must use TLS
  WallMs since{};
  int64_t pid = 0;
  std::string build{};

  friend bool operator==(const Provider&, const Provider&) = default;
};

// A machine id that a server holds, and its bound.
struct HeldMachine {
  MachineId machine;
  WallMs bound;

  friend bool operator==(const HeldMachine&, const HeldMachine&) = default;
};

// A server's report of its state. After a loss of the tree, `firn restore` raises the floor and
// the ledgers above every bound and `high` in these reports.
//
// A node has room for some thousands of tags. It lists those with the highest ledgers;
// `high_others` is at or above the ledgers of all others. So a restore has an upper limit for each
// tag, which is less exact for the tags not listed.
struct ProviderReport {
  ServerPhase phase = ServerPhase::kNotReady;  // kReady: ids of at least one tag can be issued
  int64_t format = ClusterMeta::kFormat;       // the newest that the server supports
  std::string reason{};  // why it refuses all calls, or some for another cause than `refused`
  std::optional<MachineId> machine{};     // held up to `bound`
  WallMs bound{};                         // the highest bound it has held, of any machine id
  std::vector<HeldMachine> more{};        // further machine ids that it holds
  WallMs lease_bound{};                   // the highest of the machine ids that it has leased
  Milliseconds window{};                  // its --claim_window_ms; 0: an earlier version
  int64_t clock_skew_ms = 0;              // of the id clock, which may be ahead: see restore.h
  std::optional<int64_t> wall_skew_ms{};  // wall clock minus the registry's clock, if that is known
  std::string cluster{};                  // uuid of its cluster; empty: not known yet
  std::map<std::string, int64_t> high{};  // per tag, the highest ledger that this server has seen;
                                          // 0 or absent: not relevant for a restore
  int64_t high_others = 0;                // at or above the ledgers of all other tags
  // Its stores of segment tags, and whether each permits `buffer = none`.
  std::map<std::string, bool> stores{};
  // The stores for which the ledger may provide ranges while they are unreachable, and the plugins
  // and strategies that tags may use. `strategies` is empty in the reports of versions that publish
  // none of the three.
  std::set<std::string> stand_ins{};
  std::set<std::string> plugins{};
  std::set<std::string> strategies{};
  // Tags that it refuses, each with the state and the reason. No more than kRefusedMax are written,
  // each reason is Shortened to kRefusedBytesMax; `refused_others` counts the tags left out.
  std::map<std::string, std::string> refused{};
  int64_t refused_others = 0;
  // Tags that it serves by an earlier definition, each with the reason why it does not serve the
  // current one. Bounded as `refused` is; the rest is left out.
  std::map<std::string, std::string> outdated{};
  // Tags that it serves from numbers in memory while their source provides no more, each with the
  // reason. Bounded as `refused` is; the rest is left out.
  std::map<std::string, std::string> unsupplied{};
  // When its TLS certificates expire, by kind: "public", "admin", and "public clients", "admin
  // clients" for the authorities of clients. Empty without TLS.
  std::map<std::string, WallMs> certificates{};
  std::string admin{};          // URL of its admin port; empty: an earlier version
  bool overloaded = false;      // it has refused over 1 % of its last calls as OVERLOADED
  bool history_lost = false;    // records of the plugin `history` were lost in the last minutes
  std::string clock_trouble{};  // why it does not believe the registry's clock; empty: it does
  std::string
      grant_trouble{};  // why a successor of the process cannot resume its claim; empty: it can

  // All machine ids that it holds.
  std::vector<HeldMachine> Held() const;
  // Returns the bound up to which it holds `held`; empty if it does not hold it.
  std::optional<WallMs> BoundOf(MachineId held) const;

  // Returns the highest value that the ledger of `tag` may have reached.
  int64_t HighOf(const std::string& tag) const;

  friend bool operator==(const ProviderReport&, const ProviderReport&) = default;
};

// An operator's settings for one server. Absent: weight 100, enabled.
struct Configurator {
  static constexpr int kWeightMax = 10'000;
  int weight = 100;
  bool disabled = false;
  std::string others{};  // members of later versions, kept when it is rewritten

  friend bool operator==(const Configurator&, const Configurator&) = default;
};

// "not_ready", "serving", "draining". An offline server is announced as draining, since clients
// have to use other servers either way.
std::string_view AnnouncedPhase(ServerPhase phase);

// "thrift://host:port/firn.IdService?application=...", URL-encoded into one path component.
std::string ProviderNodeName(const Provider& provider);
Result<Provider> ParseProviderNodeName(std::string_view name);

// JSON, one object. Parsing accepts at most kReportBytesMax, since a node is untrusted input.
// Formatting writes far less, since every client reads it after every change: tags beyond
// kHighBytesMax become part of `high_others`, and tags without numbers are omitted.
inline constexpr size_t kReportBytesMax = 256 << 10;
inline constexpr size_t kHighBytesMax = 64 << 10;
inline constexpr size_t kReasonBytesMax = 1000;
inline constexpr size_t kRefusedMax = 20;
inline constexpr size_t kRefusedBytesMax = 400;
std::string FormatReport(const ProviderReport& report);
Result<ProviderReport> ParseReport(std::string_view json);

// A configurator may be rewritten by another program than its creator; a report never is.
std::string FormatConfigurator(const Configurator& configurator);
Result<Configurator> ParseConfigurator(std::string_view json);

}  // namespace firn
