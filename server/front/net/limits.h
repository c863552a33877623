#pragma once

#include <cstddef>
#include <cstdint>

namespace firn::front {

// Resources that one peer, and all peers together, may use. A request beyond a limit is answered
// with an error or ends the connection, and is counted by cause (counters.h).

// One request.
constexpr size_t kFrameBytesMax = 64 * 1024;  // Thrift, without the four length bytes
constexpr int32_t kStringBytesMax = 1024;     // Thrift
constexpr int32_t kContainerItemsMax = 16;    // Thrift
constexpr int64_t kRunsIdsMax =
    10'000'000;  // ids of one call for runs; a strategy may permit fewer
constexpr size_t kHttpHeaderBytesMax = 8 * 1024;
constexpr size_t kHttpBodyBytesMax = 64 * 1024;

// The server has a flag for each field, except for two that only tests change.
struct Limits {
  int64_t list_ids_max = 100'000;  // each of these ids is in memory and on the wire

  // One connection.
  size_t requests_per_turn_max = 1024;            // for tests: requests of one turn
  size_t output_waiting_bytes_max = 1024 * 1024;  // for tests: the server stops reading when more
                                                  // answers are unsent
  int64_t idle_ms = 120'000;                      // without a request
  int64_t half_request_ms = 10'000;  // for a request to arrive completely, for a peer to read all
                                     // answers, or to read 1/16 of output_waiting_bytes_max
  int64_t issue_wait_ms = 50;        // how long a request may wait for ids

  // All connections of the listener.
  size_t connections_max = 10'000;
  size_t connections_per_peer_max = 5'000;            // per peer: see places.h
  size_t output_total_bytes_max = 256 * 1024 * 1024;  // of buffers and TLS handshakes
  int spare_descriptors = 16;  // kept free for the registry and the stores: if fewer are free,
                               // connections are closed, or accepting pauses
};

}  // namespace firn::front
