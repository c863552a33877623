#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/text/text_template.h"
#include "server/issue/plugin.h"
#include "server/issue/range_cursor.h"
#include "server/issue/strategy.h"

namespace firn {

// How a tag is to be served.
struct TagBinding {
  std::string name;
  std::shared_ptr<Strategy> strategy;
  std::vector<std::shared_ptr<Plugin>> plugins;  // any order; the chain sorts them
  std::shared_ptr<const TextTemplate> text{};    // null: decimal
};

// The same, ready for use. Immutable, and on cache lines of its own: every call reads it.
struct alignas(64) Binding {
  explicit Binding(TagBinding binding);

  std::shared_ptr<Strategy> strategy;
  PluginChain plugins;
  bool plain;           // no plugins: nothing to run around the strategy
  RangeCursor* cursor;  // of a plain tag: where single ids come from; null: ask the strategy
  std::shared_ptr<const TextTemplate> text;
};

// A tag's place in the table.
class alignas(64) Tag {
 public:
  explicit Tag(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  // How it is served at this moment; null when it has been removed.
  const Binding* binding() const { return binding_.load(std::memory_order_acquire); }

 private:
  friend class TagTable;

  const std::string name_;
  std::atomic<const Binding*> binding_{nullptr};
};

// Tags by name, read without a lock while they change. That works because nothing is ever freed
// before the table goes: a tag keeps its place, its earlier bindings stay, and a hash table that
// has become too small stays behind the larger one. Hence the limits.
//
// Thread-safe; Find reads a few words and takes no lock. A thread that asks for the name that it
// asked for last need not even hash it.
class TagTable {
 public:
  static constexpr size_t kTagsMax = 100'000;
  static constexpr size_t kEditsMax = 1'000'000;  // in the life of the table

  TagTable();
  ~TagTable();

  // kInvalid without a name or a strategy, kExhausted at a limit; then nothing has changed.
  Status Set(TagBinding binding);
  void Remove(std::string_view name);

  // Serves every name that is not in the table from now on; nothing: such names are unknown.
  void SetDefault(std::optional<TagBinding> binding);

  // Null when the name is not known and there is no default. A removed tag is still found.
  const Tag* Find(std::string_view name) const;

  // Known names that look like `name`, nearest first, at most `count_max`.
  std::vector<std::string> Near(std::string_view name, size_t count_max) const;

 private:
  struct Slots;

  const Binding* Keep(TagBinding binding);
  void Insert(Tag* tag);
  void Grow();

  const uint64_t number_;  // of the table, in this process
  std::atomic<Slots*> slots_;
  Tag default_{""};
  alignas(64) mutable std::mutex mutex_;  // all below; apart from what every call reads
  std::vector<std::unique_ptr<Slots>> all_slots_;
  std::vector<std::unique_ptr<Tag>> tags_;
  std::vector<std::unique_ptr<const Binding>> bindings_;  // every one there has ever been
};

}  // namespace firn
