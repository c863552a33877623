#pragma once

#include <cstddef>
#include <cstdint>

namespace firn::front {

// What the front door lets one peer, and all of them together, take. Every field is a flag of the
// server. Requests beyond a limit are answered with an error or end the connection, and are
// counted by cause (counters.h).
struct Limits {
  // One request.
  size_t frame_bytes_max = 64 * 1024;  // Thrift, the four length bytes not counted
  int32_t string_bytes_max = 1024;     // Thrift
  int32_t container_items_max = 16;    // Thrift
  int64_t list_ids_max = 100'000;      // ids that are in memory and on the wire one by one
  int64_t runs_ids_max = 10'000'000;   // ids of one call for runs; a strategy may permit fewer
  size_t http_header_bytes_max = 8 * 1024;
  size_t http_body_bytes_max = 64 * 1024;

  // One connection.
  size_t requests_per_turn_max = 1024;            // served before others get their turn
  int64_t turn_us_max = 2'000;                    // the same, where they take long
  size_t output_waiting_bytes_max = 1024 * 1024;  // unsent answers; reading stops beyond it
  int64_t idle_ms = 120'000;                      // without a request
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
