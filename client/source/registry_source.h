#pragma once

#include <memory>
#include <string>

#include "client/client_events.h"
#include "client/server_source.h"
#include "common/base/status.h"
#include "common/base/units.h"

namespace firn {

struct RegistrySourceOptions {
  // Where the last good list is kept for the next start, see list_cache.h; its folder must exist.
  // Empty: nowhere, and a program that starts while the registry is away knows no server.
  std::string cache_file{};
  std::string auth{};  // "user:password" for ZooKeeper; empty: none
  Milliseconds session_time{10'000};
  // Told why a list was kept out, a file not used, a node skipped. Empty: nobody is told.
  EventHook on_event{};
};

// Makes sources of servers as the cluster's registry knows them: zk://host:port,.../firn/<cluster>
// or dir:///path. `list://` is understood as well, so that a program may leave the choice to its
// configuration.
//
//     firn::Client client({.servers = "zk://zk1,zk2,zk3/firn/shop",
//                          .open_source = firn::RegistrySources(
//                              {.cache_file = "/var/cache/shop/firn-servers"})});
//
//  1. Start tells the list of the cache file at once, where there is one that can be believed, with
//     `from_cache` set; the registry's own takes its place as soon as it answers.
//  2. Changes come about 100 ms after the first of a burst, and the lost ones within a minute.
//  3. A registry that is away, denies or answers nonsense changes nothing: the last list stays. An
//     empty list is kept out as well: servers that all vanish at once have rather lost the registry
//     than ended, and asking them does no harm. Nor does an expired session change anything.
//  4. Every list names the cluster by uuid and layout, as its root node has them.
//  5. What is told is also written to the cache file.
//
// The opener says kInvalid to what is no registry. A source's Start says what opening a directory
// said, kNotFound where there is none; for ZooKeeper it does not wait. Lists are told inside Start
// and on a thread of the source's own.
SourceOpener RegistrySources(RegistrySourceOptions options = {});

}  // namespace firn
