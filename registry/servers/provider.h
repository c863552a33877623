#pragma once

#include <cstdint>
#include <map>
#include <optional>
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
//   /firn.IdService/providers/<url>               ephemeral; who it is in the name, how in the data
//   /firn.IdService/configurators/<host:port>     persistent; what an operator says of it
//
// Values and their node forms; thread-compatible. Whatever does not read back is refused with a
// reason, so that one foreign node hides itself and nothing else.

inline constexpr std::string_view kServicePath = "/firn.IdService";
inline constexpr std::string_view kProvidersPath = "/firn.IdService/providers";
inline constexpr std::string_view kConfiguratorsPath = "/firn.IdService/configurators";

// What stays the same as long as the process lives.
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

// A machine id that a server holds, and up to where.
struct HeldMachine {
  MachineId machine;
  WallMs bound;

  friend bool operator==(const HeldMachine&, const HeldMachine&) = default;
};

// What the server says of itself while it lives. `firn restore` lifts the floor and the ledgers
// above every bound and `high` that stands in one of these, after the tree itself was lost.
//
// A node has room for some thousands of tags. Those with the highest ledgers are named one by one,
// and `high_others` lies at or above the ledgers of all others, so that a restore knows of each tag
// how far it may have come; where tags are left out it knows that less exactly.
struct ProviderReport {
  ServerPhase phase = ServerPhase::kNotReady;  // kReady: ids of at least one tag can be issued
  int64_t format = ClusterMeta::kFormat;       // the newest that the server speaks
  std::string reason{};  // why it refuses all calls, or some for another cause than `refused`
  std::optional<MachineId> machine{};  // that it holds up to `bound`
  WallMs bound{};                      // the highest that it has held anything up to
  std::vector<HeldMachine> more{};     // what else it holds
  int64_t clock_skew_ms = 0;           // of the id clock, which may lead: see restore.h
  std::optional<int64_t>
      wall_skew_ms{};     // of the wall clock, against the registry's, if that tells
  std::string cluster{};  // uuid of the one that it belongs to; empty: not known yet
  std::map<std::string, int64_t> high{};  // per tag, the highest that this server has seen; 0 or
                                          // absent: nothing that a restore would have to know
  int64_t high_others = 0;                // of tags that `high` does not name
  // The stores of segment tags that it has, and whether each permits `buffer = none`.
  std::map<std::string, bool> stores{};
  // Tags that it refuses, each with the state and the reason. No more than kRefusedMax are written,
  // and each reason is cut at kRefusedBytesMax; `refused_others` counts the tags left out.
  std::map<std::string, std::string> refused{};
  int64_t refused_others = 0;
  std::string clock_trouble{};  // why it does not believe the registry's clock; empty: it does

  // All that it holds.
  std::vector<HeldMachine> Held() const;
  // Up to where it holds this one; empty: it does not.
  std::optional<WallMs> BoundOf(MachineId held) const;

  // How far the ledger of `tag` may have come.
  int64_t HighOf(const std::string& tag) const;

  friend bool operator==(const ProviderReport&, const ProviderReport&) = default;
};

// An operator's word on one server. Absent: weight 100, enabled.
struct Configurator {
  static constexpr int kWeightMax = 10'000;
  int weight = 100;
  bool disabled = false;
  std::string others{};  // a later version's members, kept by whoever writes it again

  friend bool operator==(const Configurator&, const Configurator&) = default;
};

// "not_ready", "serving", "draining": what is offline is announced as draining, since clients are
// to go elsewhere either way.
std::string_view AnnouncedPhase(ServerPhase phase);

// "thrift://host:port/firn.IdService?application=...", URL-encoded into one path component.
std::string ProviderNodeName(const Provider& provider);
Result<Provider> ParseProviderNodeName(std::string_view name);

// JSON, one object. At most kReportBytesMax come in: a node is data of strangers. Far less goes
// out, since every client reads it after every change: tags beyond kHighBytesMax become part of
// `high_others`, tags without numbers are left out.
inline constexpr size_t kReportBytesMax = 256 << 10;
inline constexpr size_t kHighBytesMax = 64 << 10;
inline constexpr size_t kReasonBytesMax = 1000;
inline constexpr size_t kRefusedMax = 20;
inline constexpr size_t kRefusedBytesMax = 300;
std::string FormatReport(const ProviderReport& report);
Result<ProviderReport> ParseReport(std::string_view json);

// A configurator is written again by others than its maker; a report never is.
std::string FormatConfigurator(const Configurator& configurator);
Result<Configurator> ParseConfigurator(std::string_view json);

}  // namespace firn
