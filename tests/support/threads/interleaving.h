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

// A place in the source that touches shared memory.
struct Site {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;

  auto operator<=>(const Site&) const = default;
  std::string text() const { return file + ":" + std::to_string(line); }
};

// Which half of its memory order a site is tried without.
enum class OrderPart : uint8_t { kAcquire, kRelease };

struct Weakening {
  Site site;
  OrderPart part;
  auto operator<=>(const Weakening&) const = default;
};

// How far the search goes. Within it nothing is left out.
struct InterleavingLimits {
  int preemptions = 2;     // a thread is interrupted, though it could go on
  int stale_reads = 2;     // another value is seen than the newest
  int foresights = 1;      // a value is seen that is stored later only; with one preemption at most
  int64_t runs = 300'000;  // a search that needs more is not complete
};

class Interleaving;

// Makes the objects, has Run() drive some threads, and looks at what came of it. Must do the same
// again when the threads do.
using Scenario = std::function<void(Interleaving&)>;

struct Exploration {
  int64_t runs = 0;
  bool complete = false;
  std::optional<std::string> violation;  // the first, and the steps that led to it
  std::set<Weakening> orders;            // what was met that could be weakened
};

// Runs the scenario in one way after another: every order of the threads' steps, and for every load
// each value that the C++ memory model lets it see, within the limits. The search ends with the
// first violation.
Exploration Explore(const Scenario& scenario, const InterleavingLimits& limits = {},
                    const std::optional<Weakening>& weakened = std::nullopt);

// The same for `runs` ways drawn by `seed`, without limits to preemptions and stale reads.
Exploration ExploreAtRandom(const Scenario& scenario, uint64_t seed, int64_t runs,
                            const std::optional<Weakening>& weakened = std::nullopt);

// One way to run a scenario. Its threads are fibres that take turns before each step on shared
// memory, so that a run is a row of choices and can be had again.
//
// The memory is that of C++ by WeakMemory: a load may see any value that is not older than one that
// its thread knows of: that it has seen or stored itself, or that came before what it acquired. A
// read-modify-write sees the newest and hands on what a release before it said. So store buffers,
// invalidations that come late, and compilers that move relaxed accesses are among the runs; so are
// relaxed loads that see what is stored later only, one a run. Not among them: stores of two
// threads to one object in another order than they ran in.
//
// Two races on plain memory are found, too: a pointer that is read without an acquire of its
// release, and an atomic that is used by a thread that does not know of its making.
class Interleaving {
 public:
  // Runs a thread for each function, all to their ends. Once a run, three at most.
  void Run(std::vector<std::function<void()>> threads);

  // The calling thread, while it runs, foresees nothing (see above): for one that would end the
  // process over a value that nobody ever stores.
  void ForeseeNothing() { threads_[running_].foresees = false; }

  // Says what must hold, anywhere in the scenario.
  void Expect(bool holds, const std::string& otherwise);

  // The run that goes on; null outside of one, where atomics are plain values.
  static Interleaving* Current() { return current_; }

  // The steps, for the instrumented types (interleaved/common/base/atomic.h). `place` is the object
  // and `value` what it holds; values are bits.
  struct Access {
    const void* place;
    uint64_t value;
    bool is_pointer;
    std::source_location at;
  };
  uint64_t Load(const Access& access, std::memory_order order);
  void Store(const Access& access, uint64_t stored, std::memory_order order);
  // Sees the newest value, always.
  uint64_t Modify(const Access& access, const Change& change, std::memory_order order,
                  std::memory_order otherwise);
  void Make(const void* place, uint64_t value);
  void Forget(const void* place);
  void Lock(const void* mutex);
  bool TryLock(const void* mutex);
  void Unlock(const void* mutex);
  // This thread has nothing to do before another one has changed something.
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
  // What a load has seen in any run so far.
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

  // On a stack that is dropped while it waits.
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
  bool gathers_ = true;  // what is seen, for those who foresee it later
  std::optional<std::string> violation_;

  static inline Interleaving* current_ = nullptr;
};

}  // namespace firn
