#include "client/source/list_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

#include <boost/crc.hpp>

#include "common/base/endpoint.h"
#include "common/base/quote.h"
#include "common/base/url_encoding.h"

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

bool ReadPhase(std::string_view text, ServerPhase& phase) {
  for (const auto one : {ServerPhase::kNotReady, ServerPhase::kReady, ServerPhase::kDraining}) {
    phase = one;
    if (text == PhaseText(one)) return true;
  }
  return false;
}

std::string CheckLine(std::string_view body) {
  boost::crc_32_type crc;
  crc.process_bytes(body.data(), body.size());
  char digits[9] = "00000000";
  char hex[9];
  const auto end = std::to_chars(hex, hex + 8, crc.checksum(), 16).ptr;
  std::copy(hex, end, digits + 8 - (end - hex));
  return "check " + std::string(digits) + "\n";
}

std::string ServerLine(const KnownServer& server) {
  return "server " + UrlEncode(server.address) + " " + std::to_string(server.rack) + " " +
         std::to_string(server.weight) + " " + std::string(kSwitch[server.disabled ? 1 : 0]) + " " +
         std::string(PhaseText(server.phase)) + "\n";
}

// The next part of `text` up to `end`, which goes, too; all of it when there is no `end`.
std::string_view Cut(std::string_view& text, char end) {
  const size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

Result<std::string> ReadWord(std::string_view& body, std::string_view key) {
  std::string_view line = Cut(body, '\n');
  if (Cut(line, ' ') != key) return Corrupt("no line " + std::string(key) + " where it belongs");
  return UrlDecode(line);
}

template <typename Number>
bool ReadNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

template <size_t n>
bool ReadChoice(std::string_view text, const std::array<std::string_view, n>& choices,
                size_t& choice) {
  choice = static_cast<size_t>(std::find(choices.begin(), choices.end(), text) - choices.begin());
  return choice < n;
}

Result<KnownServer> ReadServer(std::string_view line) {
  const std::string_view whole = line;
  KnownServer server;
  size_t disabled = 0;
  const bool is_server = Cut(line, ' ') == "server";
  FIRN_ASSIGN(server.address, UrlDecode(Cut(line, ' ')));
  const bool good = is_server && ReadNumber(Cut(line, ' '), server.rack) &&
                    ReadNumber(Cut(line, ' '), server.weight) && server.weight >= 0 &&
                    ReadChoice(Cut(line, ' '), kSwitch, disabled) &&
                    ReadPhase(line, server.phase) && Endpoint::Parse(server.address).ok();
  if (!good) return Corrupt(Quoted(whole) + " is no server");
  server.disabled = disabled == 1;
  return server;
}

Result<KeptList> ReadBody(std::string_view body) {
  if (Cut(body, '\n') != kHead) return Corrupt("it does not begin with " + std::string(kHead));
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
  std::string text = std::string(kHead) + "\nregistry " + UrlEncode(kept.registry) + "\ncluster " +
                     UrlEncode(cluster.uuid) + "\nlayout " + UrlEncode(cluster.layout) + "\n";
  for (const KnownServer& server : kept.list.servers) text += ServerLine(server);
  return text + CheckLine(text);
}

Result<KeptList> ParseList(std::string_view text) {
  if (text.size() > kListTextBytesMax) return Corrupt("a list of servers is never so long");
  if (text.size() < kCheckLineBytes) return Corrupt("too short to be a list of servers");
  const std::string_view body = text.substr(0, text.size() - kCheckLineBytes);
  if (text.substr(body.size()) != CheckLine(body)) return Corrupt("its check does not match");
  Result<KeptList> kept = ReadBody(body);
  if (!kept.ok()) return Corrupt(kept.status().message());
  // Whoever makes the check can still not say one thing in two ways.
  if (FormatList(*kept) != text) return Corrupt("it is not spelled as it should be");
  return kept;
}

}  // namespace firn
