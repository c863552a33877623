#include "server/issue/tag_table.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/base/near_names.h"

namespace firn {
namespace {

constexpr size_t kFirstSlots = 64;

std::atomic<uint64_t> tables_made{0};

// The tag that a thread found last. Valid only for the table with this number; numbers are never
// reused.
struct Last {
  uint64_t table = 0;
  const Tag* tag = nullptr;
};
constinit thread_local Last last;

}  // namespace

// An open-addressing hash table. Its size is a power of two; at most half of its places are in use.
struct TagTable::Slots {
  explicit Slots(size_t size) : mask(size - 1), places(size) {}

  static size_t Hash(std::string_view name) { return std::hash<std::string_view>{}(name); }

  const size_t mask;
  std::vector<std::atomic<Tag*>> places;
};

Binding::Binding(TagBinding binding)
    : strategy(std::move(binding.strategy)),
      plugins(std::move(binding.plugins)),
      plain(plugins.empty()),
      cursor(plain ? strategy->cursor() : nullptr),
      text(std::move(binding.text)) {}

TagTable::TagTable() : number_(++tables_made) {
  all_slots_.push_back(std::make_unique<Slots>(kFirstSlots));
  slots_.store(all_slots_.back().get(), std::memory_order_release);
}

TagTable::~TagTable() = default;

const Tag* TagTable::Find(std::string_view name) const {
  if (last.table == number_ && last.tag->name() == name) return last.tag;
  const Slots& slots = *slots_.load(std::memory_order_acquire);
  for (size_t i = Slots::Hash(name);; ++i) {  // terminates, because half of the places are empty
    const Tag* tag = slots.places[i & slots.mask].load(std::memory_order_acquire);
    if (tag == nullptr) return default_.binding() != nullptr ? &default_ : nullptr;
    if (tag->name() == name) {
      last = {number_, tag};
      return tag;
    }
  }
}

Status TagTable::Set(TagBinding binding) {
  if (binding.name.empty()) return Invalid("a tag needs a name");
  if (binding.strategy == nullptr) return Invalid("tag " + binding.name + " has no strategy");
  const std::lock_guard lock(mutex_);
  if (bindings_.size() >= kEditsMax) return Exhausted("too many changes of tags for one process");
  const Tag* known = Find(binding.name);
  if (known == nullptr || known == &default_) {
    if (tags_.size() == kTagsMax) return Exhausted("too many tags");
    auto tag = std::make_unique<Tag>(binding.name);
    tag->binding_.store(Keep(std::move(binding)), std::memory_order_release);
    tags_.push_back(std::move(tag));
    if (tags_.size() * 2 > all_slots_.back()->places.size()) Grow();
    Insert(tags_.back().get());
    return {};
  }
  const auto own = std::find_if(tags_.begin(), tags_.end(),
                                [known](const auto& tag) { return tag.get() == known; });
  (*own)->binding_.store(Keep(std::move(binding)), std::memory_order_release);
  return {};
}

void TagTable::Remove(std::string_view name) {
  const std::lock_guard lock(mutex_);
  for (const auto& tag : tags_) {
    if (tag->name() == name) tag->binding_.store(nullptr, std::memory_order_release);
  }
}

void TagTable::SetDefault(std::optional<TagBinding> binding) {
  const std::lock_guard lock(mutex_);
  default_.binding_.store(binding ? Keep(*std::move(binding)) : nullptr, std::memory_order_release);
}

std::vector<std::string> TagTable::Near(std::string_view name, size_t count_max) const {
  std::vector<std::string_view> known;  // names that live as long as the table
  {
    const std::lock_guard lock(mutex_);
    for (const auto& tag : tags_) {
      if (known.size() == kKnownMax) break;
      if (tag->binding() != nullptr) known.push_back(tag->name());
    }
  }
  return NearNames(name, known, count_max);
}

const Binding* TagTable::Keep(TagBinding binding) {
  bindings_.push_back(std::make_unique<const Binding>(std::move(binding)));
  return bindings_.back().get();
}

void TagTable::Insert(Tag* tag) {
  Slots& slots = *all_slots_.back();
  size_t i = Slots::Hash(tag->name());
  while (slots.places[i & slots.mask].load(std::memory_order_relaxed) != nullptr) ++i;
  slots.places[i & slots.mask].store(tag, std::memory_order_release);
}

// Adds a table twice as large with all tags but the newest, which Set inserts next.
void TagTable::Grow() {
  all_slots_.push_back(std::make_unique<Slots>(all_slots_.back()->places.size() * 2));
  for (size_t i = 0; i + 1 < tags_.size(); ++i) Insert(tags_[i].get());
  slots_.store(all_slots_.back().get(), std::memory_order_release);
}

}  // namespace firn
