#include "registry/open/open_coordinator.h"

#include <algorithm>
#include <utility>

#include "common/base/quote.h"
#include "registry/dir/dir_coordinator.h"
#include "registry/seam/requests.h"

namespace firn {
namespace {

constexpr std::string_view kZk = "zk://";
constexpr std::string_view kDir = "dir://";
constexpr std::string_view kForms =
    "a registry is zk://host:port,host:port/firn/<cluster> or dir:///path";

bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }

bool HasControls(std::string_view text) { return std::any_of(text.begin(), text.end(), IsControl); }

bool IsPort(std::string_view text) {
  const bool digits =
      !text.empty() && text.size() <= 5 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return false;
  const int port = std::stoi(std::string(text));
  return port >= 1 && port <= 65535;
}

// Parses "host", "host:port" or "[v6]:port", and adds a missing port.
Result<std::string> ParseHost(std::string_view text) {
  const size_t bracket = text.rfind(']');
  const size_t colon = text.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  const std::string_view host = text.substr(0, has_port ? colon : text.size());
  if (host.empty()) return Invalid("a host of the registry is empty");
  for (const char c : host) {
    if (IsControl(c) || c == ' ' || c == '@') {
      return Invalid("a host of the registry has an invalid character");
    }
  }
  if (!has_port) return std::string(host) + ":2181";
  if (!IsPort(text.substr(colon + 1))) return Invalid("not a port: " + Quoted(text));
  return std::string(text);
}

std::unique_ptr<Coordinator> OpenZk(ZkOptions zk, const OpenOptions& options, const Clock& clock) {
  zk.auth = options.auth;
  zk.session_time = options.session_time;
  zk.time_limit = options.time_limit;
  return std::make_unique<ZkCoordinator>(std::move(zk), clock);
}

}  // namespace

Result<ZkOptions> ParseZkPlace(std::string_view place) {
  const size_t slash = place.find('/');
  if (slash == std::string_view::npos || slash + 1 == place.size()) {
    return Invalid("the registry names no cluster, as in zk://host:port/firn/<cluster>");
  }
  ZkOptions options;
  options.root = place.substr(slash);
  FIRN_TRY(CheckPath(options.root).WithContext("the registry's path"));
  std::string_view hosts = place.substr(0, slash);
  while (true) {
    const size_t comma = std::min(hosts.find(','), hosts.size());
    FIRN_ASSIGN(const std::string host, ParseHost(hosts.substr(0, comma)));
    options.hosts += (options.hosts.empty() ? "" : ",") + host;
    if (comma == hosts.size()) return options;
    hosts.remove_prefix(comma + 1);
  }
}

Result<DirOptions> ParseDirPlace(std::string_view place) {
  constexpr std::string_view kAdopt = "?adopt";
  DirOptions options;
  options.adopt = place.ends_with(kAdopt);
  if (options.adopt) place.remove_suffix(kAdopt.size());
  const bool good = place.size() > 1 && place.front() == '/' && !HasControls(place) &&
                    place.find('?') == std::string_view::npos;
  if (!good) {
    return Invalid("a directory registry requires an absolute path, as in dir:///var/lib/firn");
  }
  options.path = place;
  return options;
}

Result<std::string> ParseCredentials(std::string_view content) {
  std::string line(content.substr(0, content.find_first_of("\r\n")));
  const size_t colon = line.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == line.size() || HasControls(line)) {
    return Invalid("the registry's credentials must be one line user:password");
  }
  return line;
}

Result<std::unique_ptr<Coordinator>> OpenEnsemble(const std::string& text,
                                                  const OpenOptions& options, const Clock& clock) {
  if (!text.starts_with(kZk)) return Invalid("\"" + text + "\" is not a zk:// registry");
  FIRN_ASSIGN(ZkOptions zk, ParseZkPlace(std::string_view(text).substr(kZk.size())));
  zk.root.clear();
  zk.shared = true;
  return OpenZk(std::move(zk), options, clock);
}

Result<std::unique_ptr<Coordinator>> OpenCoordinator(const std::string& text,
                                                     const OpenOptions& options, const Clock& clock,
                                                     Entropy& entropy) {
  if (text.starts_with(kZk)) {
    FIRN_ASSIGN(ZkOptions zk, ParseZkPlace(std::string_view(text).substr(kZk.size())));
    return OpenZk(std::move(zk), options, clock);
  }
  if (text.starts_with(kDir)) {
    FIRN_ASSIGN(DirOptions dir, ParseDirPlace(std::string_view(text).substr(kDir.size())));
    dir.time_limit = options.time_limit;
    FIRN_ASSIGN(auto coordinator, DirCoordinator::Open(std::move(dir), clock, entropy));
    return std::unique_ptr<Coordinator>(std::move(coordinator));
  }
  return Invalid("\"" + text + "\" is not a registry: " + std::string(kForms));
}

}  // namespace firn
