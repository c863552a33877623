#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace firn {

// The effect of a read-modify-write on the value that it finds.
struct Change {
  enum class Kind : uint8_t { kExchange, kAdd, kCompareExchange };
  Kind kind;
  uint64_t operand;
  uint64_t expected = 0;  // kCompareExchange only
};

// Atomic objects as the threads of a program may see them, by the rules of C++ (interleaving.h says
// which). All values of each object are kept. A thread's *view* records, for each object, the
// oldest value that it may still see, and for each thread, how many of its steps it knows of.
// Thread-compatible.
class WeakMemory {
 public:
  static constexpr size_t kThreadsMax = 4;
  static constexpr size_t kObjectsMax = 60;

  void Clear();

  // For an object that a thread creates while others run, and for the end of an object.
  void Make(size_t thread, const void* place, uint64_t value);
  void Forget(const void* place);

  // Returns how many values a load may see, 1 or more. An object that is used for the first time
  // has the value `value`.
  size_t VisibleTo(size_t thread, const void* place, uint64_t value);

  // Sees the value that is `age` before the newest; it must be one of those.
  uint64_t Load(size_t thread, const void* place, size_t age, std::memory_order order);
  // Whether this thread's last load saw that value.
  bool SawLast(size_t thread, const void* place, size_t age) const;
  void Store(size_t thread, const void* place, uint64_t before, uint64_t value,
             std::memory_order order);
  // Returns the value before the modification. A comparison that fails is a load of the newest
  // value.
  uint64_t Modify(size_t thread, const void* place, uint64_t before, const Change& change,
                  std::memory_order order, std::memory_order otherwise);

  // A load sees a value that is stored later, as a relaxed load may. The promise is kept once
  // another thread, which does not know of the load, stores the value.
  uint64_t Foresee(size_t thread, const void* place, uint64_t value);
  // Returns a foreseen value that is not stored yet.
  std::optional<uint64_t> Foreseen(size_t thread, const void* place) const;
  // Whether all promises were kept: otherwise the run is impossible.
  bool Believable() const;

  // The view that a mutex passes on.
  void Acquire(size_t thread, const void* mutex);
  void Release(size_t thread, const void* mutex);

  // The scenario's thread starts all others, and later waits for them.
  void Fork(size_t threads);
  void Join(size_t threads);

  uint64_t Newest(const void* place) const;

  // Whether `thread` knows of the store of the value that it read last: false means a race on the
  // pointer's target.
  bool KnowsWriter(size_t thread, const void* place) const;
  // Whether it knows of the object's construction.
  bool KnowsMaker(size_t thread, const void* place);

 private:
  // First the threads, then the objects.
  using View = std::array<uint16_t, kThreadsMax + kObjectsMax>;

  struct Stored {
    uint64_t value;
    View released;  // the view that an acquire gets
    size_t writer;
    uint16_t step;  // the writer's
  };
  struct Object {
    const void* place;
    std::vector<Stored> values;
    std::array<size_t, kThreadsMax> seen;  // last, by thread
  };

  struct Promise {
    size_t thread;
    const void* place;
    uint64_t value;
    uint16_t step;
    enum class State : uint8_t { kOpen, kKept, kBroken } state;
  };

  size_t IndexOf(const void* place, uint64_t value);
  static void Learn(View& view, const View& other);
  void KeepPromises(size_t thread, size_t object, uint64_t value);
  void Append(size_t thread, size_t object, uint64_t value, std::memory_order order,
              const View* carried_on);
  uint64_t See(size_t thread, size_t object, size_t index, std::memory_order order);

  std::vector<Object> objects_;
  size_t used_ = 0;
  std::array<View, kThreadsMax> views_{};
  struct MutexView {
    const void* mutex;
    View view;
  };
  std::vector<MutexView> mutexes_;
  std::vector<Promise> promises_;
};

}  // namespace firn
