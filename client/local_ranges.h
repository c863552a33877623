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

// A tag whose ids are fetched ahead, and how. Numbers out of range are taken as the nearest good
// one.
struct LocalTag {
  std::string tag;
  // Ids that were asked for longer ago are dropped and counted, so that their time order stays
  // honest. Absent: ids keep.
  std::optional<Milliseconds> max_age{};
  // How long one fetch shall last at the rate of late: its size follows from it.
  Milliseconds lasts{1000};
  int64_t fetch_max = 1'000'000;  // of one fetch; less when the servers refuse so much

  // Ids made of time: a second old at most, as many as servers give at once.
  static LocalTag Snowflake(std::string tag);
  // Ids made of counting: they keep.
  static LocalTag Segment(std::string tag);
};

// Ids at the speed of memory, for tags that are worth it:
//
//     firn::Client client({.servers = "list://10.0.0.7:7609",
//                          .local_ranges = firn::LocalRanges({firn::LocalTag::Segment("order")})});
//     client.GetId("order");
//
//  1. A tag has two buffers: one is used, the next one is fetched when half of it is gone, or at
//     once where the other half would not last until the answer. When both are empty a blocking
//     call waits for the fetch that is under way, for a quarter of its deadline at most; then, and
//     when there is no such fetch, it asks a server itself. An asynchronous call does so at once.
//  2. A thread cuts a piece off the buffer, under a lock, and takes its ids from there without one.
//     A piece that a thread leaves at its end goes to a later thread.
//  3. A fetch that was used up too soon is followed by a larger one, one that lasted too long by a
//     smaller one. Whoever asks for nothing fetches nothing.
//  4. After a failure the next fetch waits: 10 ms to 1 s, or 1 s to 30 s when a server said that
//     asking again will not help.
//  5. If a server refuses a fetch because the tag does not exist, the ids in memory are dropped.
//
// Ids of one thread and tag ascend within a fetch; between threads, and between fetches from
// different servers, there is no order. What is in memory when the program ends is lost, and never
// given to anyone else.
//
// At most 64 tags, each named once: else the client's status is kInvalid. `clock` and `entropy`
// must outlive the supply.
LocalSupplyMaker LocalRanges(std::vector<LocalTag> tags, const Clock& clock = SystemClock(),
                             Entropy& entropy = SystemEntropy());

}  // namespace firn
