#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "client/client_events.h"
#include "client/server_source.h"
#include "common/base/status.h"
#include "common/time/entropy.h"

namespace firn::client {

inline constexpr std::string_view kSeedScheme = "firn://";

// Asks the client's servers for the list, one after another until one answers. Calls `done` once,
// on any thread, or not at all after the source was stopped. Must not wait.
using AskServers =
    std::function<void(int64_t known_version, std::function<void(Result<ToldServers>)> done)>;

// The source of firn://host:port,host:port: discovers all servers through any one of them.
//
//  1. It starts with the seeds, or the list in the cache file, and asks at once.
//  2. It asks again at the time that the answer named; within 1 s after a call failed (Hurry); and
//     with backoff, at most 1 min, while no server answers. When a server answers again, it reports
//     the list once more even if it is equal, because calls wait for that.
//  3. SeedList decides which list is used. With firn://host:port?cache=/path/of/file the last
//     reported list is written to that file, see list_cache.h.
//
// kInvalid names every fault of the text. `ask` is called on the source's own thread until Stop, so
// the objects that it refers to must live until then. `entropy` is thread-safe and outlives the
// source.
Result<std::unique_ptr<ServerSource>> OpenSeedSource(const std::string& servers, AskServers ask,
                                                     EventHook on_event, Entropy& entropy);

}  // namespace firn::client
