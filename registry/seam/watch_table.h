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

// What a watch waits for.
enum class WatchKind : uint8_t {
  kNode,      // the node's creation, erasure and data
  kChildren,  // children that come or go, and the node's erasure
};

// Who wants to hear of changes, by node. Bounded: of one number the last Coordinator::kWatchesMax
// are kept. Thread-compatible.
//
// Sharp edge: what is added after its number has fired waits under that number still. Whoever asks
// a server for a watch takes the number before asking and adds under it when the answer is there:
// so a notice of an earlier watch, told in between, does not take the new one away.
class WatchTable {
 public:
  using Id = uint64_t;
  using Fired = std::vector<Coordinator::Changed>;
  // The number under which a node's watches of a kind fire together: the same until they have
  // fired, then another. Never 0.
  Id IdOf(WatchKind kind, std::string_view path);

  // `id` is what IdOf said of this kind and path, now or earlier.
  void Add(Id id, WatchKind kind, std::string_view path, Coordinator::Changed changed);

  // Takes out what is to be called. Empty when nobody waits.
  Fired Fire(WatchKind kind, std::string_view path);
  Fired Fire(Id id);

  // All, in the order of the numbers, so that a run repeats.
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
