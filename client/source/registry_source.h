#pragma once

#include <memory>
#include <string>

#include "client/client_events.h"
#include "client/server_source.h"
#include "common/base/status.h"
#include "common/base/units.h"

namespace firn {

struct RegistrySourceOptions {
  // File of the last good list for the next start, see list_cache.h; its folder must exist.
  // Empty: none; then a program that starts while the registry is unreachable knows no server.
  std::string cache_file{};
  std::string auth{};  // "user:password" for ZooKeeper; empty: none
  Milliseconds session_time{10'000};
  // Receives events: a list that was not used, an unusable file, a skipped node. Empty: no events.
  EventHook on_event{};
};

// Opens sources that read the servers from the cluster's registry:
// zk://host:port,.../firn/<cluster> or dir:///path. Also accepts `list://`, so that a program's
// configuration can choose.
//
//     firn::Client client({.servers = "zk://zk1,zk2,zk3/firn/shop",
//                          .open_source = firn::RegistrySources(
//                              {.cache_file = "/var/cache/shop/firn-servers"})});
//
//  1. Start reports the list in the cache file at once, if it is valid, with `from_cache` set. The
//     registry's list replaces it as soon as the registry answers.
//  2. Changes are reported about 100 ms after the first of a burst; a missed one within 1 min.
//  3. While the registry is unreachable, denies access or returns invalid data, the last list
//     stays. It also stays if the list becomes empty: servers that vanish together have probably
//     lost the registry, and trying them does no harm. An expired session changes nothing either.
//  4. Every list contains the cluster's uuid and layout from the root node.
//  5. Reported lists are also written to the cache file.
//
// The opener returns kInvalid for a text that does not name a registry. Start returns the failure
// of opening a directory, kNotFound if it does not exist; for ZooKeeper it does not wait. Lists are
// reported inside Start and on the source's own thread.
SourceOpener RegistrySources(RegistrySourceOptions options = {});

}  // namespace firn
