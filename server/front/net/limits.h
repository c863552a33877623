#pragma once

#include <cstddef>
#include <cstdint>

namespace firn::front {

// What the front door lets one peer, and all of them together, take. Requests beyond a limit are
// answered with an error or end the connection, and are counted by cause (counters.h).

// One request.
constexpr size_t kFrameBytesMax = 64 * 1024;  // Thrift, the four length bytes not counted
constexpr int32_t kStringBytesMax = 1024;     // Thrift
constexpr int32_t kContainerItemsMax = 16;    // Thrift
constexpr int64_t kRunsIdsMax =
    10'000'000;  // ids of one call for runs; a strategy may permit fewer
constexpr size_t kHttpHeaderBytesMax = 8 * 1024;
constexpr size_t kHttpBodyBytesMax = 64 * 1024;

// A flag of the server sets each field but those that only tests change.
struct Limits {
  int64_t list_ids_max = 100'000;  // ids that are in memory and on the wire one by one

  // One connection.
  size_t requests_per_turn_max = 1024;  // of tests: served before others get their turn
  size_t output_waiting_bytes_max =
      1024 * 1024;                   // of tests: unsent answers; reading stops beyond it
  int64_t idle_ms = 120'000;         // without a request
  int64_t half_request_ms = 10'000;  // from a request's first byte to its last; also how long a
                                     // peer may leave its answers unread, or take for a
                                     // sixteenth of what may wait
  int64_t issue_wait_ms = 50;        // how long a request may wait for ids

  // All connections of the listener.
  size_t connections_max = 10'000;
  size_t connections_per_peer_max = 5'000;            // of one address: see places.h
  size_t output_total_bytes_max = 256 * 1024 * 1024;  // of buffers and TLS handshakes
  int spare_descriptors = 16;  // when no more are left in the process, the listener waits: a server
                               // that cannot reach its registry or a store is of no use to anyone
};

}  // namespace firn::front
