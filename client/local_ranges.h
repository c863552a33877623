#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/local_supply.h"
#include "common/base/units.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"

namespace firn {

// A tag whose ids are prefetched, and how. Values out of range are replaced by the nearest valid
// one.
struct LocalTag {
  std::string tag;
  // Maximum age of an id. Older ids are dropped and counted, so that ids follow the order of time.
  // Absent: ids are kept.
  std::optional<Milliseconds> max_age{};
  // Time for which one fetch should last at the recent rate; determines its size.
  Milliseconds lasts{1000};
  int64_t fetch_max = 1'000'000;  // maximum size of a fetch; lower if the servers refuse that size

  // For snowflake tags: ids at most 1 s old, and as many per fetch as servers issue at once.
  static LocalTag Snowflake(std::string tag);
  // For segment tags: ids are kept.
  static LocalTag Segment(std::string tag);
};

// Prefetches ids of these tags, so that GetId answers from memory:
//
//     firn::Client client({.servers = "list://10.0.0.7:7609",
//                          .local_ranges = firn::LocalRanges({firn::LocalTag::Segment("order")})});
//     client.GetId("order");
//
//  1. A tag has two buffers. The next buffer is fetched when half of the current one is used, or at
//     once if the other half would not last until the answer. If both are empty, a blocking call
//     waits for a fetch in progress, for at most a quarter of its deadline. After that, or without
//     a fetch, it asks a server itself. An asynchronous call does so at once.
//  2. A thread takes a piece of the buffer under a lock, and then takes ids of it without a lock.
//     The piece of a thread that ends goes to a later thread.
//  3. If a fetch is used up too soon, the next one is larger. If it lasts too long, the next one is
//     smaller. Without calls nothing is fetched.
//  4. After a failure the next fetch waits 10 ms to 1 s, or 1 s to 30 s if the server's reason says
//     that a retry will not help.
//  5. If a server refuses a fetch because the tag does not exist, the ids in memory are dropped.
//
// Ids of one thread and tag ascend within a fetch. Between threads, and between fetches from
// different servers, there is no order. Ids that are in memory when the program ends are lost, and
// never issued again.
//
// At most 64 tags, each named once; otherwise the client's status is kInvalid. `clock` and
// `entropy` must outlive the supply.
LocalSupplyMaker LocalRanges(std::vector<LocalTag> tags, const Clock& clock = SystemClock(),
                             Entropy& entropy = SystemEntropy());

}  // namespace firn
