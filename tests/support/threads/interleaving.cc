#include "tests/support/threads/interleaving.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "common/base/status.h"

namespace firn {
namespace {

constexpr size_t kStepsMax = 5'000;  // per run; a run with more steps counts as endless

bool IsAt(const std::source_location& at, const Site& site) {
  return at.line() == site.line && at.column() == site.column && at.file_name() == site.file;
}

bool Has(std::memory_order order, OrderPart part) {
  if (order == std::memory_order_acq_rel || order == std::memory_order_seq_cst) return true;
  return order ==
         (part == OrderPart::kAcquire ? std::memory_order_acquire : std::memory_order_release);
}

std::memory_order Without(std::memory_order order, OrderPart part) {
  if (!Has(order, part)) return order;
  if (order == std::memory_order_acquire || order == std::memory_order_release) {
    return std::memory_order_relaxed;
  }
  return part == OrderPart::kAcquire ? std::memory_order_release : std::memory_order_acquire;
}

}  // namespace

// Explores the runs of a scenario.
class Explorer {
 public:
  Explorer(const Scenario& scenario, const std::optional<Weakening>& weakened)
      : scenario_(scenario), weakened_(weakened ? &*weakened : nullptr) {}

  // Runs the scenario until no other run is left, a violation is found, or the limit is reached.
  void Go(Choices& choices, int64_t runs_max) {
    run_.choices_ = &choices;
    found_.complete = false;
    while (!found_.violation && found_.runs < runs_max) {
      if (!choices.Begin()) {
        found_.complete = true;
        break;
      }
      ++found_.runs;
      run_.Begin(weakened_);
      scenario_(run_);
      run_.End();
      found_.violation = run_.violation_;
    }
    found_.orders = run_.orders_;
  }

  // From now on, loads may foresee the values that were recorded until now.
  void BeginToForesee() { run_.gathers_ = false; }

  const Exploration& found() const { return found_; }

 private:
  const Scenario& scenario_;
  const Weakening* weakened_;
  Interleaving run_;
  Exploration found_;
};

Exploration Explore(const Scenario& scenario, const InterleavingLimits& limits,
                    const std::optional<Weakening>& weakened) {
  Explorer explorer(scenario, weakened);
  Choices choices(limits.preemptions, limits.stale_reads, 0);
  explorer.Go(choices, limits.runs);
  if (!explorer.found().complete || limits.foresights == 0) return explorer.found();
  explorer.BeginToForesee();
  Choices foresights(std::min(limits.preemptions, 1), 0, limits.foresights);
  explorer.Go(foresights, limits.runs);
  return explorer.found();
}

Exploration ExploreAtRandom(const Scenario& scenario, uint64_t seed, int64_t runs,
                            const std::optional<Weakening>& weakened) {
  Explorer explorer(scenario, weakened);
  Choices choices(seed);
  explorer.Go(choices, runs);
  return explorer.found();
}

Interleaving::Interleaving() {
  fibres_.push_back(std::make_unique<Fibre>());
  for (size_t thread = 1; thread < WeakMemory::kThreadsMax; ++thread) {
    fibres_.push_back(std::make_unique<Fibre>([this, thread] { Work(thread); }));
  }
}

void Interleaving::Begin(const Weakening* weakened) {
  memory_.Clear();
  locked_.clear();
  steps_.clear();
  violation_.reset();
  weakened_ = weakened;
  current_ = this;
}

void Interleaving::End() {
  current_ = nullptr;
  if (!memory_.Believable()) violation_.reset();
}

// A fibre lasts for all runs, with one thread's work in each.
void Interleaving::Work(size_t thread) {
  for (;;) {
    threads_[thread].work();
    threads_[thread].finished = true;
    HandOver(/*may_stay=*/false);
  }
}

void Interleaving::Run(std::vector<std::function<void()>> threads) {
  if (threads.size() >= WeakMemory::kThreadsMax) Die("a scenario has too many threads");
  memory_.Fork(threads.size());
  for (size_t i = 0; i < threads.size(); ++i) {
    threads_[i + 1] = Thread{.work = std::move(threads[i]), .finished = false};
  }
  HandOver(/*may_stay=*/false);
  memory_.Join(threads.size());
}

// The threads that can make a step, except the running one.
Interleaving::ThreadList Interleaving::Others() const {
  ThreadList others;
  for (size_t thread = 1; thread < threads_.size(); ++thread) {
    const Thread& one = threads_[thread];
    const bool waits = one.waits_for != nullptr && locked_.contains(one.waits_for);
    if (thread != running_ && !one.finished && !one.resting && !waits) {
      others.threads[others.count++] = thread;
    }
  }
  return others;
}

// Resumes another thread, or this one if it may run.
void Interleaving::HandOver(bool may_stay) {
  ThreadList others = Others();
  if (may_stay) {
    const size_t chosen = choices_->Among(1 + others.count, Choices::Kind::kPreemption);
    if (chosen != 0) SwitchTo(others.threads[chosen - 1]);
    return;
  }
  if (others.count == 0) {
    for (Thread& thread : threads_) thread.resting = false;
    others = Others();
  }
  if (others.count != 0) return SwitchTo(others.threads[choices_->Among(others.count)]);
  const bool all_finished = std::all_of(threads_.begin(), threads_.end(),
                                        [](const Thread& thread) { return thread.finished; });
  if (all_finished) return SwitchTo(0);
  if (running_ == 0 || threads_[running_].finished || threads_[running_].waits_for != nullptr) {
    Die("the threads of a scenario wait for each other:\n" + Trace());
  }
}

void Interleaving::SwitchTo(size_t thread) {
  if (thread == running_) return;
  Fibre& from = *fibres_[running_];
  running_ = thread;
  from.SwitchTo(*fibres_[thread]);
}

// Called before each step of a thread.
void Interleaving::Point() {
  if (running_ == 0) return;
  if (steps_.size() > kStepsMax) Die("a scenario does not end:\n" + Trace());
  HandOver(/*may_stay=*/true);
}

void Interleaving::Rest() {
  Thread& thread = threads_[running_];
  if (running_ == 0 || thread.rested_at == thread.steps) return;
  thread.rested_at = thread.steps;
  thread.resting = true;
  HandOver(/*may_stay=*/false);
  thread.resting = false;
}

void Interleaving::Expect(bool holds, const std::string& otherwise) {
  if (holds || violation_) return;
  violation_ = otherwise + "\n" + Trace();
  if (memory_.Believable()) choices_->Settle();
}

std::memory_order Interleaving::OrderAt(const std::source_location& at, std::memory_order order) {
  if (weakened_ != nullptr) {
    return IsAt(at, weakened_->site) ? Without(order, weakened_->part) : order;
  }
  for (const OrderPart part : {OrderPart::kAcquire, OrderPart::kRelease}) {
    if (Has(order, part)) orders_.insert({{at.file_name(), at.line(), at.column()}, part});
  }
  return order;
}

uint64_t Interleaving::Load(const Access& access, std::memory_order order) {
  Point();
  order = OrderAt(access.at, order);
  if (order == std::memory_order_relaxed) {
    if (const auto foreseen = Foresee(access)) return *foreseen;
  }
  const size_t visible = memory_.VisibleTo(running_, access.place, access.value);
  size_t age = 0;
  while (age + 1 < visible) {
    const bool again = memory_.SawLast(running_, access.place, age + 1);
    const auto kind = again ? Choices::Kind::kFree : Choices::Kind::kStaleRead;
    if (choices_->Among(2, kind) == 0) break;
    ++age;
  }
  const uint64_t seen = memory_.Load(running_, access.place, age, order);
  Made("loads", access, seen, age);
  if (gathers_) SeenAt(access.at).values.insert(seen);
  return seen;
}

// Chooses a value that this load sees in other runs and that is not stored yet.
std::optional<uint64_t> Interleaving::Foresee(const Access& access) {
  if (gathers_ || running_ == 0 || !threads_[running_].foresees) return std::nullopt;
  if (const auto before = memory_.Foreseen(running_, access.place)) return before;
  const std::set<uint64_t>& values = SeenAt(access.at).values;
  const size_t chosen = choices_->Among(1 + values.size(), Choices::Kind::kForesight);
  if (chosen == 0) return std::nullopt;
  const uint64_t value = *std::next(values.begin(), static_cast<std::ptrdiff_t>(chosen) - 1);
  Made("foresees", access, memory_.Foresee(running_, access.place, value));
  return value;
}

Interleaving::Seen& Interleaving::SeenAt(const std::source_location& at) {
  for (Seen& seen : seen_) {
    if (seen.at.line() == at.line() && seen.at.column() == at.column() &&
        seen.at.file_name() == at.file_name()) {
      return seen;
    }
  }
  return seen_.emplace_back(Seen{at, {}});
}

void Interleaving::Store(const Access& access, uint64_t stored, std::memory_order order) {
  Point();
  memory_.Store(running_, access.place, access.value, stored, OrderAt(access.at, order));
  Made("stores", access, stored);
  WakeOthers();
}

uint64_t Interleaving::Modify(const Access& access, const Change& change, std::memory_order order,
                              std::memory_order otherwise) {
  Point();
  order = OrderAt(access.at, order);
  if (weakened_ != nullptr) otherwise = OrderAt(access.at, otherwise);
  const uint64_t found =
      memory_.Modify(running_, access.place, access.value, change, order, otherwise);
  Made("modifies", access, found);
  if (memory_.Newest(access.place) != found) WakeOthers();
  return found;
}

void Interleaving::Made(const char* what, const Access& access, uint64_t value, size_t age) {
  ++threads_[running_].steps;
  steps_.push_back({running_, what, access.at, value, age});
  CheckRaces(access);
}

// Wakes the threads that rest.
void Interleaving::WakeOthers() {
  for (size_t thread = 1; thread < threads_.size(); ++thread) {
    if (thread != running_) threads_[thread].resting = false;
  }
}

void Interleaving::CheckRaces(const Access& access) {
  Expect(memory_.KnowsMaker(running_, access.place),
         "a thread uses an object of whose making it does not know");
  if (!access.is_pointer || steps_.back().value == 0) return;
  Expect(memory_.KnowsWriter(running_, access.place),
         "a thread reads a pointer without knowing what was written behind it");
}

void Interleaving::Make(const void* place, uint64_t value) {
  if (running_ == 0) return memory_.Forget(place);
  memory_.Make(running_, place, value);
}

void Interleaving::Forget(const void* place) { memory_.Forget(place); }

void Interleaving::Lock(const void* mutex) {
  Point();
  while (locked_.contains(mutex)) {
    threads_[running_].waits_for = mutex;
    HandOver(/*may_stay=*/false);
  }
  threads_[running_].waits_for = nullptr;
  locked_.insert(mutex);
  memory_.Acquire(running_, mutex);
}

bool Interleaving::TryLock(const void* mutex) {
  Point();
  if (!locked_.insert(mutex).second) return false;
  memory_.Acquire(running_, mutex);
  return true;
}

void Interleaving::Unlock(const void* mutex) {
  Point();
  locked_.erase(mutex);
  memory_.Release(running_, mutex);
  WakeOthers();
}

std::string Interleaving::Trace() const {
  std::ostringstream text;
  for (const Step& step : steps_) {
    const std::string_view file(step.at.file_name());
    text << "  thread " << step.thread << ' ' << step.what << ' ' << std::hex << step.value
         << std::dec;
    if (step.age != 0) text << " (" << step.age << " older than the newest)";
    text << " at " << file.substr(file.rfind('/') + 1) << ':' << step.at.line() << '\n';
  }
  return text.str();
}

}  // namespace firn
