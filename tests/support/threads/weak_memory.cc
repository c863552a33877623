#include "tests/support/threads/weak_memory.h"

#include <algorithm>

#include "common/base/status.h"

namespace firn {
namespace {

bool Acquires(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}

bool Releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

uint64_t Changed(const Change& change, uint64_t found) {
  return change.kind == Change::Kind::kAdd ? found + change.operand : change.operand;
}

}  // namespace

void WeakMemory::Clear() {
  used_ = 0;
  views_ = {};
  mutexes_.clear();
  promises_.clear();
}

void WeakMemory::Learn(View& view, const View& other) {
  for (size_t i = 0; i < view.size(); ++i) view[i] = std::max(view[i], other[i]);
}

// Objects that existed before the threads are known to all of them.
size_t WeakMemory::IndexOf(const void* place, uint64_t value) {
  for (size_t i = 0; i < used_; ++i) {
    if (objects_[i].place == place) return i;
  }
  if (used_ == kObjectsMax) Die("a scenario has too many atomic objects");
  if (used_ == objects_.size()) objects_.emplace_back();
  Object& object = objects_[used_];
  object.place = place;
  object.values.clear();
  object.values.push_back({value, {}, 0, 0});
  object.seen.fill(SIZE_MAX);
  return used_++;
}

void WeakMemory::Make(size_t thread, const void* place, uint64_t value) {
  Forget(place);
  Stored& first = objects_[IndexOf(place, value)].values.front();
  first.writer = thread;
  first.step = ++views_[thread][thread];
}

// The object's address may be reused; its index is not.
void WeakMemory::Forget(const void* place) {
  for (size_t i = 0; i < used_; ++i) {
    if (objects_[i].place == place) objects_[i].place = nullptr;
  }
}

size_t WeakMemory::VisibleTo(size_t thread, const void* place, uint64_t value) {
  const size_t object = IndexOf(place, value);
  return objects_[object].values.size() - views_[thread][kThreadsMax + object];
}

bool WeakMemory::SawLast(size_t thread, const void* place, size_t age) const {
  for (size_t i = 0; i < used_; ++i) {
    const Object& object = objects_[i];
    if (object.place == place) return object.seen[thread] == object.values.size() - 1 - age;
  }
  return false;
}

uint64_t WeakMemory::See(size_t thread, size_t object, size_t index, std::memory_order order) {
  const Stored& stored = objects_[object].values[index];
  for (Promise& promise : promises_) {
    const bool open = promise.state == Promise::State::kOpen;
    const bool own = promise.thread == thread && promise.place == objects_[object].place;
    if (open && own) promise.state = Promise::State::kBroken;
  }
  View& view = views_[thread];
  ++view[thread];
  view[kThreadsMax + object] = static_cast<uint16_t>(index);
  objects_[object].seen[thread] = index;
  if (Acquires(order)) Learn(view, stored.released);
  return stored.value;
}

uint64_t WeakMemory::Load(size_t thread, const void* place, size_t age, std::memory_order order) {
  const size_t object = IndexOf(place, 0);
  return See(thread, object, objects_[object].values.size() - 1 - age, order);
}

uint64_t WeakMemory::Foresee(size_t thread, const void* place, uint64_t value) {
  promises_.push_back({thread, place, value, ++views_[thread][thread], Promise::State::kOpen});
  return value;
}

std::optional<uint64_t> WeakMemory::Foreseen(size_t thread, const void* place) const {
  for (const Promise& promise : promises_) {
    const bool open = promise.state == Promise::State::kOpen;
    if (open && promise.thread == thread && promise.place == place) return promise.value;
  }
  return std::nullopt;
}

bool WeakMemory::Believable() const {
  return std::all_of(promises_.begin(), promises_.end(),
                     [](const Promise& promise) { return promise.state == Promise::State::kKept; });
}

// A thread's own store follows its own load, so the load cannot have foreseen it.
void WeakMemory::KeepPromises(size_t thread, size_t object, uint64_t value) {
  for (Promise& promise : promises_) {
    if (promise.state != Promise::State::kOpen) continue;
    if (promise.place != objects_[object].place) continue;
    if (promise.thread == thread) promise.state = Promise::State::kBroken;
    if (promise.thread == thread || promise.value != value) continue;
    if (views_[thread][promise.thread] >= promise.step) continue;
    promise.state = Promise::State::kKept;
    views_[promise.thread][kThreadsMax + object] =
        static_cast<uint16_t>(objects_[object].values.size());
  }
}

void WeakMemory::Append(size_t thread, size_t object, uint64_t value, std::memory_order order,
                        const View* carried_on) {
  KeepPromises(thread, object, value);
  View& view = views_[thread];
  Stored stored{value, {}, thread, ++view[thread]};
  const size_t index = objects_[object].values.size();
  view[kThreadsMax + object] = static_cast<uint16_t>(index);
  if (carried_on != nullptr) stored.released = *carried_on;
  stored.released[kThreadsMax + object] = static_cast<uint16_t>(index);
  if (Releases(order)) Learn(stored.released, view);
  objects_[object].values.push_back(stored);
  objects_[object].seen[thread] = index;
}

void WeakMemory::Store(size_t thread, const void* place, uint64_t before, uint64_t value,
                       std::memory_order order) {
  Append(thread, IndexOf(place, before), value, order, nullptr);
}

uint64_t WeakMemory::Modify(size_t thread, const void* place, uint64_t before, const Change& change,
                            std::memory_order order, std::memory_order otherwise) {
  const size_t object = IndexOf(place, before);
  const size_t newest = objects_[object].values.size() - 1;
  const uint64_t found = objects_[object].values[newest].value;
  if (change.kind == Change::Kind::kCompareExchange && found != change.expected) {
    return See(thread, object, newest, otherwise);
  }
  See(thread, object, newest, order);
  const View carried_on = objects_[object].values[newest].released;
  Append(thread, object, Changed(change, found), order, &carried_on);
  return found;
}

void WeakMemory::Acquire(size_t thread, const void* mutex) {
  for (const MutexView& known : mutexes_) {
    if (known.mutex == mutex) Learn(views_[thread], known.view);
  }
}

void WeakMemory::Release(size_t thread, const void* mutex) {
  ++views_[thread][thread];
  for (MutexView& known : mutexes_) {
    if (known.mutex == mutex) return Learn(known.view, views_[thread]);
  }
  mutexes_.push_back({mutex, views_[thread]});
}

void WeakMemory::Fork(size_t threads) {
  for (size_t thread = 1; thread <= threads; ++thread) views_[thread] = views_[0];
}

void WeakMemory::Join(size_t threads) {
  for (size_t thread = 1; thread <= threads; ++thread) Learn(views_[0], views_[thread]);
}

uint64_t WeakMemory::Newest(const void* place) const {
  for (size_t i = 0; i < used_; ++i) {
    if (objects_[i].place == place) return objects_[i].values.back().value;
  }
  return 0;
}

bool WeakMemory::KnowsWriter(size_t thread, const void* place) const {
  for (size_t i = 0; i < used_; ++i) {
    const Object& object = objects_[i];
    if (object.place != place) continue;
    const Stored& stored = object.values[object.seen[thread]];
    return views_[thread][stored.writer] >= stored.step;
  }
  return true;
}

bool WeakMemory::KnowsMaker(size_t thread, const void* place) {
  for (size_t i = 0; i < used_; ++i) {
    const Object& object = objects_[i];
    if (object.place != place) continue;
    return views_[thread][object.values.front().writer] >= object.values.front().step;
  }
  return true;
}

}  // namespace firn
