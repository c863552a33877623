#include "client/source/list_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <boost/crc.hpp>

#include "common/base/cat.h"
#include "common/base/hex.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/base/url_encoding.h"
#include "common/net/endpoint.h"

namespace firn {
namespace {

constexpr std::string_view kHead = "firn-servers 1";
constexpr size_t kCheckLineBytes = sizeof("check 01234567\n") - 1;
constexpr std::array<std::string_view, 2> kSwitch{"enabled", "disabled"};

std::string_view PhaseText(ServerPhase phase) {
  switch (phase) {
    case ServerPhase::kNotReady:
      return "not-ready";
    case ServerPhase::kReady:
      return "serving";
    case ServerPhase::kOffline:
    case ServerPhase::kDraining:
      break;
  }
  return "draining";
}

std::optional<ServerPhase> ReadPhase(std::string_view text) {
  for (const auto phase : {ServerPhase::kNotReady, ServerPhase::kReady, ServerPhase::kDraining}) {
    if (text == PhaseText(phase)) return phase;
  }
  return std::nullopt;
}

std::string CheckLine(std::string_view body) {
  boost::crc_32_type crc;
  crc.process_bytes(body.data(), body.size());
  const uint64_t sum = crc.checksum();  // has 32 bits: the last eight digits
  return Cat("check ", ToHex(sum).substr(8), "\n");
}

std::string ServerLine(const KnownServer& server) {
  return Cat("server ", UrlEncode(server.address), " ", server.rack, " ", server.weight, " ",
             kSwitch[server.disabled ? 1 : 0], " ", PhaseText(server.phase),
             server.tls ? " tls" : "", "\n");
}

// Removes and returns the text before `end`, and removes `end`; all of `text` if it lacks `end`.
std::string_view Cut(std::string_view& text, char end) {
  const size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

Result<std::string> ReadWord(std::string_view& body, std::string_view key) {
  std::string_view line = Cut(body, '\n');
  if (Cut(line, ' ') != key) return Corrupt(Cat("the line ", key, " is missing or misplaced"));
  return UrlDecode(line);
}

Result<KnownServer> ReadServer(std::string_view line) {
  const std::string_view whole = line;
  const bool is_server = Cut(line, ' ') == "server";
  FIRN_ASSIGN(std::string address, UrlDecode(Cut(line, ' ')));
  const auto rack = ParseNumber<uint32_t>(Cut(line, ' '));
  const auto weight = ParseNumberWithin<int>(Cut(line, ' '), 0);
  const std::string_view listed = Cut(line, ' ');
  const auto disabled = std::find(kSwitch.begin(), kSwitch.end(), listed);
  const std::optional<ServerPhase> phase = ReadPhase(Cut(line, ' '));
  const bool good = is_server && (line.empty() || line == "tls") && Endpoint::Parse(address).ok() &&
                    rack && weight && phase && disabled != kSwitch.end();
  if (!good) return Corrupt(Cat(Quoted(whole), " is not a server"));
  return KnownServer{.address = std::move(address),
                     .rack = *rack,
                     .weight = *weight,
                     .disabled = disabled != kSwitch.begin(),
                     .phase = *phase,
                     .tls = !line.empty()};
}

Result<KeptList> ReadBody(std::string_view body) {
  if (Cut(body, '\n') != kHead) return Corrupt(Cat("it does not begin with ", kHead));
  KeptList kept;
  kept.list.from_cache = true;
  FIRN_ASSIGN(kept.registry, ReadWord(body, "registry"));
  FIRN_ASSIGN(kept.list.cluster.uuid, ReadWord(body, "cluster"));
  FIRN_ASSIGN(kept.list.cluster.layout, ReadWord(body, "layout"));
  while (!body.empty()) {
    if (kept.list.servers.size() == ServerList::kServersMax) return Corrupt("too many servers");
    FIRN_ASSIGN(KnownServer server, ReadServer(Cut(body, '\n')));
    kept.list.servers.push_back(std::move(server));
  }
  return kept;
}

}  // namespace

std::string FormatList(const KeptList& kept) {
  const ClusterIdentity& cluster = kept.list.cluster;
  std::string text = Cat(kHead, "\nregistry ", UrlEncode(kept.registry), "\ncluster ",
                         UrlEncode(cluster.uuid), "\nlayout ", UrlEncode(cluster.layout), "\n");
  for (const KnownServer& server : kept.list.servers) text += ServerLine(server);
  return text + CheckLine(text);
}

Result<KeptList> ParseList(std::string_view text) {
  if (text.size() > kListTextBytesMax) return Corrupt("too long to be a list of servers");
  if (text.size() < kCheckLineBytes) return Corrupt("too short to be a list of servers");
  const std::string_view body = text.substr(0, text.size() - kCheckLineBytes);
  if (text.substr(body.size()) != CheckLine(body)) return Corrupt("its checksum does not match");
  Result<KeptList> kept = ReadBody(body);
  if (!kept.ok()) return Corrupt(kept.status().message());
  // Accepts only one spelling of a list, even with a correct checksum.
  if (FormatList(*kept) != text) return Corrupt("it is not in the canonical form");
  return kept;
}

}  // namespace firn
