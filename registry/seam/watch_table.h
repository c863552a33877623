#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "registry/seam/coordinator.h"

namespace firn {

// The changes that a watch reports.
enum class WatchKind : uint8_t {
  kNode,      // the node's creation, erasure and data
  kChildren,  // added and removed children, and the node's erasure
};

// Callbacks of watches, by node. Bounded: for each number, the last Coordinator::kWatchesMax are
// kept. Thread-compatible.
//
// Sharp edge: a callback that is added after its number has fired still waits under that number. To
// set a watch on a server, take the number before the request and add the callback when the answer
// arrives. Then a notification of an earlier watch in between does not remove the new callback.
class WatchTable {
 public:
  using Id = uint64_t;
  using Fired = std::vector<Coordinator::Changed>;
  // Returns the number under which a node's watches of a kind fire together: the same until they
  // have fired, then another one. Never 0.
  Id IdOf(WatchKind kind, std::string_view path);

  // `id` was returned by IdOf for this kind and path, now or earlier.
  void Add(Id id, WatchKind kind, std::string_view path, Coordinator::Changed changed);

  // Removes and returns the callbacks to call; empty if there are none.
  Fired Fire(WatchKind kind, std::string_view path);
  Fired Fire(Id id);

  // Fires all, in the order of the numbers, so that runs are reproducible.
  Fired FireAll();

  bool empty() const { return entries_.empty(); }

 private:
  struct Key {
    WatchKind kind;
    std::string path;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyView {
    WatchKind kind;
    std::string_view path;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const Key& key) const { return (*this)(KeyView{key.kind, key.path}); }
    size_t operator()(const KeyView& key) const {
      return std::hash<std::string_view>{}(key.path) * 2 + static_cast<size_t>(key.kind);
    }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Key& a, const Key& b) const { return a == b; }
    bool operator()(const KeyView& a, const Key& b) const {
      return a.kind == b.kind && a.path == b.path;
    }
    bool operator()(const Key& a, const KeyView& b) const { return (*this)(b, a); }
  };
  struct Entry {
    Key key;
    Fired waiting;
  };

  std::unordered_map<Key, Id, Hash, Equal> ids_;
  std::unordered_map<Id, Entry> entries_;
  Id last_ = 0;
};

}  // namespace firn
