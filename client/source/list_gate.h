#pragma once

#include <mutex>
#include <optional>

#include "client/client_events.h"
#include "client/server_source.h"
#include "client/source/list_cache.h"

namespace firn {

// Decides which lists of a registry are reported to the client.
//
//  1. A list that equals the last one is not reported.
//  2. An empty list is not reported: the last good one stays.
//  3. Each reported list is also written to the cache file. If the file cannot be read or written,
//     that is an event, not a failure.
//  4. After Close returns, the listener is neither running nor called again.
//
// Thread-safe; the listener is called under the lock, so never two at a time.
class ListGate {
 public:
  // The cache and `on_event` may be empty.
  ListGate(std::optional<ListCache> cache, EventHook on_event);

  // Starts to report lists to `on_list`, first the one in the cache file.
  void Open(ServerSource::Listener on_list);

  // Passes the registry's present list.
  void Offer(ServerList list);

  // As Offer, without writing the file. `again`: reports the list even if it equals the last one.
  void Show(ServerList list, bool again = false);

  // Returns the last reported list, if any.
  std::optional<ServerList> told();

  // Reports an event about the list.
  void Note(const std::string& sentence) const;

  void Close();

 private:
  void ReportCached();
  void Tell(ServerList list);

  const std::optional<ListCache> cache_;
  const EventHook on_event_;

  std::mutex mutex_;  // guards all members below
  ServerSource::Listener on_list_;
  std::optional<ServerList> told_;
  bool emptiness_noted_ = false;
};

}  // namespace firn
