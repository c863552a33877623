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

// Asks any server of the client for the list, one after the other until one tells it; `done` is
// called once, on any thread, or never once the source is stopped. Must not wait.
using AskServers =
    std::function<void(int64_t known_version, std::function<void(Result<ToldServers>)> done)>;

// The source of firn://host:port,host:port: any one server is enough to find all.
//
//  1. It begins with the seeds, or with the list of the cache file, and asks at once.
//  2. It asks again when the answer said so; within a second where a call met trouble (Hurry); and
//     after ever longer pauses, a minute at most, while nobody answers. When somebody does again,
//     the list is told once more, even the same one: calls wait for that.
//  3. SeedList says which list counts. With firn://host:port?cache=/path/of/file the last one that
//     was told is kept there, see list_cache.h.
//
// kInvalid names every fault of the text. `ask` is called on a thread of the source's own, and must
// not outlive what it refers to: Stop ends it. `entropy` is thread-safe and outlives the source.
Result<std::unique_ptr<ServerSource>> OpenSeedSource(const std::string& servers, AskServers ask,
                                                     EventHook on_event, Entropy& entropy);

}  // namespace firn::client
