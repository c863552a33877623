#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <string>
#include <vector>

#include "tests/support/threads/choices.h"
#include "tests/support/threads/fibre.h"
#include "tests/support/threads/weak_memory.h"

namespace firn {

// A place in the source that accesses shared memory.
struct Site {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;

  auto operator<=>(const Site&) const = default;
  std::string text() const { return file + ":" + std::to_string(line); }
};

// The half of its memory order that a site is run without.
enum class OrderPart : uint8_t { kAcquire, kRelease };

struct Weakening {
  Site site;
  OrderPart part;
  auto operator<=>(const Weakening&) const = default;
};

// Limits of the search. Within them it is complete.
struct InterleavingLimits {
  int preemptions = 2;     // interruptions of a thread that could continue
  int stale_reads = 2;     // loads of another value than the newest
  int foresights = 1;      // loads of a value that is stored later; with one preemption at most
  int64_t runs = 300'000;  // a search that needs more is incomplete
};

class Interleaving;

// Creates the objects, calls Run() with some threads, and checks the result. Must be deterministic:
// if the threads do the same, it does the same.
using Scenario = std::function<void(Interleaving&)>;

struct Exploration {
  int64_t runs = 0;
  bool complete = false;
  std::optional<std::string> violation;  // the first, with the steps that led to it
  std::set<Weakening> orders;            // memory orders that were executed and can be weakened
};

// Runs the scenario in every way within the limits: every order of the threads' steps, and for
// every load each value that the C++ memory model permits. The search ends at the first violation.
Exploration Explore(const Scenario& scenario, const InterleavingLimits& limits = {},
                    const std::optional<Weakening>& weakened = std::nullopt);

// Runs the scenario `runs` times with choices drawn by `seed`, without limits of preemptions and
// stale reads.
Exploration ExploreAtRandom(const Scenario& scenario, uint64_t seed, int64_t runs,
                            const std::optional<Weakening>& weakened = std::nullopt);

// One run of a scenario. Its threads are fibres that take turns before each step on shared memory,
// so that a run is a sequence of choices and can be repeated.
//
// The memory is that of C++, by WeakMemory. A load may see any value that is not older than one
// that its thread knows of: a value that it has seen or stored itself, or one stored before the
// value that it acquired. A read-modify-write sees the newest value and passes on an earlier
// release. So the runs include store buffers, late invalidations, compilers that move relaxed
// accesses, and relaxed loads that see a later store, one per run. They do not include two threads'
// stores to one object in another order than the run's.
//
// Two races on plain memory are detected as well: a pointer that is read without acquiring its
// release, and an atomic that is used by a thread that does not know of its construction.
class Interleaving {
 public:
  // Runs a thread for each function until all have ended. Once per run, three threads at most.
  void Run(std::vector<std::function<void()>> threads);

  // The calling thread foresees nothing while it runs (see above): for a thread that would end the
  // process because of a value that is never stored.
  void ForeseeNothing() { threads_[running_].foresees = false; }

  // Requires a condition, anywhere in the scenario.
  void Expect(bool holds, const std::string& otherwise);

  // The current run; null outside of one, where atomics are plain values.
  static Interleaving* Current() { return current_; }

  // The steps, for the instrumented types (interleaved/common/base/atomic.h). `place` is the object
  // and `value` its value as bits.
  struct Access {
    const void* place;
    uint64_t value;
    bool is_pointer;
    std::source_location at;
  };
  uint64_t Load(const Access& access, std::memory_order order);
  void Store(const Access& access, uint64_t stored, std::memory_order order);
  // Always sees the newest value.
  uint64_t Modify(const Access& access, const Change& change, std::memory_order order,
                  std::memory_order otherwise);
  void Make(const void* place, uint64_t value);
  void Forget(const void* place);
  void Lock(const void* mutex);
  bool TryLock(const void* mutex);
  void Unlock(const void* mutex);
  // Waits until another thread has changed something.
  void Rest();

 private:
  friend class Explorer;

  struct Thread {
    std::function<void()> work;
    bool finished = true;
    bool resting = false;
    bool foresees = true;
    size_t steps = 0;
    size_t rested_at = 0;             // of its steps
    const void* waits_for = nullptr;  // a mutex
  };
  // Values that a load has seen in any run so far.
  struct Seen {
    std::source_location at;
    std::set<uint64_t> values;
  };
  struct Step {
    size_t thread;
    const char* what;
    std::source_location at;
    uint64_t value;
    size_t age;
  };

  // Runs on a stack that is discarded while it waits.
  struct ThreadList {
    std::array<size_t, WeakMemory::kThreadsMax> threads;
    size_t count = 0;
  };

  Interleaving();

  void Begin(const Weakening* weakened);
  void End();
  void Work(size_t thread);
  void Point();
  void HandOver(bool may_stay);
  ThreadList Others() const;
  void SwitchTo(size_t thread);
  std::optional<uint64_t> Foresee(const Access& access);
  Seen& SeenAt(const std::source_location& at);
  std::memory_order OrderAt(const std::source_location& at, std::memory_order order);
  void Made(const char* what, const Access& access, uint64_t value, size_t age = 0);
  void WakeOthers();
  void CheckRaces(const Access& access);
  std::string Trace() const;

  Choices* choices_ = nullptr;
  WeakMemory memory_;
  std::vector<std::unique_ptr<Fibre>> fibres_;  // the first is the scenario's own
  std::array<Thread, WeakMemory::kThreadsMax> threads_;
  std::set<const void*> locked_;
  const Weakening* weakened_ = nullptr;
  std::set<Weakening> orders_;
  size_t running_ = 0;
  std::vector<Step> steps_;
  std::vector<Seen> seen_;
  bool gathers_ = true;  // records the values seen, to be foreseen in later runs
  std::optional<std::string> violation_;

  static inline Interleaving* current_ = nullptr;
};

}  // namespace firn
