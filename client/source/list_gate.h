#pragma once

#include <mutex>
#include <optional>

#include "client/client_events.h"
#include "client/server_source.h"
#include "client/source/list_cache.h"

namespace firn {

// Decides which of the lists that a directory shows reach the client.
//
//  1. A list that equals the last one is not told again.
//  2. An empty list is kept out: the last good one stays.
//  3. Each list that is told is also kept in the cache file; a file that cannot be read or written
//     is an event and no failure.
//  4. After Close nothing is told, and no call of the listener is under way.
//
// Thread-safe; the listener is called under the lock, so never two at a time.
class ListGate {
 public:
  // Without a cache nothing is kept. `on_event` may be empty.
  ListGate(std::optional<ListCache> cache, EventHook on_event);

  // From now on lists are told to `on_list`: first the one in the cache file.
  void Open(ServerSource::Listener on_list);

  // What the directory shows now.
  void Offer(ServerList list);

  // The same of a list that is not worth keeping in the file. `again`: told though it is the last.
  void Show(ServerList list, bool again = false);

  // The list that was told last, if one was.
  std::optional<ServerList> told();

  // Something that somebody may want to log, about the list.
  void Note(const std::string& sentence) const;

  void Close();

 private:
  void TellFromCache();
  void Tell(ServerList list);

  const std::optional<ListCache> cache_;
  const EventHook on_event_;

  std::mutex mutex_;  // guards all below
  ServerSource::Listener on_list_;
  std::optional<ServerList> told_;
  bool emptiness_noted_ = false;
};

}  // namespace firn
