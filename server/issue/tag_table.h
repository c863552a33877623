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

// A tag's definition, strategy and plugins.
struct TagBinding {
  std::string name;
  std::shared_ptr<Strategy> strategy;
  std::vector<std::shared_ptr<Plugin>> plugins;  // in any order; PluginChain sorts them
  std::shared_ptr<const TextTemplate> text{};    // null: decimal
};

// A TagBinding ready for use. Immutable, and on separate cache lines because every call reads it.
struct alignas(64) Binding {
  explicit Binding(TagBinding binding);

  std::shared_ptr<Strategy> strategy;
  PluginChain plugins;
  bool plain;           // no plugins
  RangeCursor* cursor;  // source of single ids of a plain tag; null: call the strategy
  std::shared_ptr<const TextTemplate> text;
};

// A tag's entry in the table.
class alignas(64) Tag {
 public:
  explicit Tag(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  // The tag's current binding; null if the tag has been removed.
  const Binding* binding() const { return binding_.load(std::memory_order_acquire); }

 private:
  friend class TagTable;

  const std::string name_;
  std::atomic<const Binding*> binding_{nullptr};
};

// Tags by name. Readers need no lock while the table changes, because nothing is freed before the
// table is destroyed: entries of tags, earlier bindings and smaller hash tables are kept. That is
// why there are limits.
//
// Thread-safe; Find reads a few words and takes no lock. A thread that looks up the same name twice
// in a row does not even hash it.
class TagTable {
 public:
  static constexpr size_t kTagsMax = 100'000;
  static constexpr size_t kEditsMax = 1'000'000;  // in the lifetime of the table

  TagTable();
  ~TagTable();

  // Adds or changes a tag. kInvalid without a name or a strategy, kExhausted at a limit; an error
  // changes nothing.
  Status Set(TagBinding binding);
  void Remove(std::string_view name);

  // Sets the binding for names that are not in the table; nullopt: such names are unknown.
  void SetDefault(std::optional<TagBinding> binding);

  // Returns null if the name is unknown and there is no default. A removed tag is still found.
  const Tag* Find(std::string_view name) const;

  // Returns known names similar to `name`, the most similar first, at most `count_max`.
  std::vector<std::string> Near(std::string_view name, size_t count_max) const;

 private:
  struct Slots;

  const Binding* Keep(TagBinding binding);
  void Insert(Tag* tag);
  void Grow();

  const uint64_t number_;  // of the table, unique in this process
  std::atomic<Slots*> slots_;
  Tag default_{""};
  alignas(64) mutable std::mutex mutex_;  // guards the members below, which calls do not read
  std::vector<std::unique_ptr<Slots>> all_slots_;
  std::vector<std::unique_ptr<Tag>> tags_;
  std::vector<std::unique_ptr<const Binding>> bindings_;  // every binding since construction
};

}  // namespace firn
