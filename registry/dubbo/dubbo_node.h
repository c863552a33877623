#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/units.h"

namespace firn {

// The tree in which Dubbo's programs find each other, at ZooKeeper's own root:
//
//   /dubbo/<interface>/providers/<url>   ephemeral; one of each server
//   /dubbo/<interface>/consumers/<url>   ephemeral; created by consumers
//   /dubbo/<interface>/configurators, routers
//
// The four folders are persistent and open to every client, because consumers create missing ones.
// All information is in the names; the data are empty.
inline constexpr std::string_view kDubboRoot = "/dubbo";

// The interfaces that firn-servers export.
inline constexpr std::array<std::string_view, 2> kDubboInterfaces{
    "io.firn.IdService", "com.robert.vesta.service.intf.IdService"};

// A Java interface that is exported.
struct DubboInterface {
  std::string name;
  std::string methods;  // "genId,expId"

  // "/dubbo/<interface>/<folder>"
  std::string Folder(std::string_view folder) const;
};

// The data of one server for consumers. They do not change while the server runs.
struct DubboProvider {
  std::string address;  // host:port that consumers connect to
  bool tls = false;
  WallMs since{};
  int64_t pid = 0;
};

// The name of a server's node, below an interface's providers: a URL, encoded as Java's URLEncoder
// does.
std::string DubboNodeName(const DubboProvider& provider, const DubboInterface& exported,
                          int weight);

// The host:port of a provider's node; empty if the name is not a Dubbo URL.
std::optional<std::string> AddressOfDubboNode(std::string_view name);

}  // namespace firn
