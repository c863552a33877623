#include "tools/bench/client_load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/time/clock.h"

namespace firn {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kNsPerSecond = 1'000'000'000;

// The times at which calls are due, and which calls are measured.
struct Times {
  Times(const ClientLoadPlan& plan, int64_t now)
      : begin(now),
        measured(begin + plan.warmup_ms * kNsPerMs),
        end(measured + plan.measure_ms * kNsPerMs) {}

  int64_t begin;
  int64_t measured;
  int64_t end;
};

// --- callers that wait ---------------------------------------------------------------------------

class BlockingCaller {
 public:
  BlockingCaller(Client& client, const ClientLoadPlan& plan, const Times& times, int index,
                 int64_t (*now_ns)())
      : client_(client),
        plan_(plan),
        times_(times),
        index_(index),
        now_ns_(now_ns),
        record_(plan.ids_max / static_cast<size_t>(plan.threads)) {}

  void Run() {
    for (int64_t i = 0;; ++i) {
      const int64_t due = plan_.rate > 0 ? AwaitTurn(i) : now_ns_();
      if (due >= times_.end) return;
      CallOnce(due);
    }
  }
  const LoadRecord& record() const { return record_; }

 private:
  // The threads make the calls in turn: thread t makes call t, t + threads, and so on.
  int64_t AwaitTurn(int64_t i) const {
    const auto turn = static_cast<double>(i * plan_.threads + index_);
    const int64_t due = times_.begin + static_cast<int64_t>(turn / plan_.rate * kNsPerSecond);
    for (int64_t now = now_ns_(); now < std::min(due, times_.end); now = now_ns_()) {
      SleepFor(std::chrono::microseconds((due - now) / 1000 + 1));
    }
    return due;
  }

  void CallOnce(int64_t due) {
    const bool measured = due >= times_.measured;
    if (plan_.batch == 1) {
      const Result<int64_t> id = client_.GetId(plan_.tag);
      const int64_t took = now_ns_() - due;
      return id.ok() ? record_.Answered(took, &*id, 1, measured)
                     : record_.Failed(took, id.status(), measured);
    }
    const auto ids = client_.GetIds(plan_.tag, plan_.batch);
    const int64_t took = now_ns_() - due;
    ids.ok() ? record_.Answered(took, ids->data(), ids->size(), measured)
             : record_.Failed(took, ids.status(), measured);
  }

  Client& client_;
  const ClientLoadPlan& plan_;
  const Times& times_;
  const int index_;
  int64_t (*const now_ns_)();
  LoadRecord record_;
};

LoadRecord RunBlocking(Client& client, const ClientLoadPlan& plan, const Times& times,
                       int64_t (*now_ns)()) {
  std::vector<std::unique_ptr<BlockingCaller>> callers;
  std::vector<std::thread> threads;
  for (int i = 0; i < plan.threads; ++i) {
    callers.push_back(std::make_unique<BlockingCaller>(client, plan, times, i, now_ns));
    threads.emplace_back([caller = callers.back().get()] { caller->Run(); });
  }
  for (std::thread& thread : threads) thread.join();
  LoadRecord sum(plan.ids_max);
  for (const auto& caller : callers) sum.Add(caller->record());
  return sum;
}

// --- calls in flight -----------------------------------------------------------------------------

// Each answer starts the next call. After the start, only the client's IO thread uses the state.
class AsyncLoad {
 public:
  AsyncLoad(Client& client, const ClientLoadPlan& plan, const Times& times, int64_t (*now_ns)())
      : client_(client), plan_(plan), times_(times), now_ns_(now_ns), record_(plan.ids_max) {}

  LoadRecord Run() {
    std::future<void> all_answered = all_answered_.get_future();
    in_flight_ = plan_.depth;
    for (int i = 0; i < plan_.depth; ++i) Begin();
    all_answered.wait();
    return std::move(record_);
  }

 private:
  void Begin() {
    const int64_t began = now_ns_();
    if (plan_.batch == 1) {
      client_.GetId(plan_.tag, [this, began](const Result<int64_t>& id) {
        const int64_t took = now_ns_() - began;
        id.ok() ? record_.Answered(took, &*id, 1, Measured(began))
                : record_.Failed(took, id.status(), Measured(began));
        GoOn(began + took);
      });
      return;
    }
    client_.GetIds(plan_.tag, plan_.batch, [this, began](const Result<std::vector<int64_t>>& ids) {
      const int64_t took = now_ns_() - began;
      ids.ok() ? record_.Answered(took, ids->data(), ids->size(), Measured(began))
               : record_.Failed(took, ids.status(), Measured(began));
      GoOn(began + took);
    });
  }

  bool Measured(int64_t began) const { return began >= times_.measured; }

  void GoOn(int64_t now) {
    if (now < times_.end) return Begin();
    if (--in_flight_ == 0) all_answered_.set_value();
  }

  Client& client_;
  const ClientLoadPlan& plan_;
  const Times& times_;
  int64_t (*const now_ns_)();
  LoadRecord record_;
  std::atomic<int> in_flight_ = 0;
  std::promise<void> all_answered_;
};

Status Check(const ClientLoadPlan& plan) {
  if (plan.depth > 0 && plan.rate > 0) return Invalid("--rate and --depth exclude each other");
  if (plan.threads < 1 || plan.threads > 1000) return Invalid("--threads must be 1 to 1000");
  if (plan.depth < 0 || plan.depth > 100'000) return Invalid("--depth must be 0 to 100000");
  if (plan.batch < 1 || plan.batch > 100'000) return Invalid("--batch must be 1 to 100000");
  if (plan.rate < 0 || plan.rate > 1e9) return Invalid("--rate must be 0 to 1000000000");
  if (plan.measure_ms < 1 || plan.warmup_ms < 0) return Invalid("nothing would be measured");
  return {};
}

}  // namespace

Result<ClientLoadReport> RunClientLoad(Client& client, const ClientLoadPlan& plan,
                                       int64_t (*now_ns)()) {
  FIRN_TRY(Check(plan));
  const Times times(plan, now_ns());
  ClientLoadReport report{.record = plan.depth > 0 ? AsyncLoad(client, plan, times, now_ns).Run()
                                                   : RunBlocking(client, plan, times, now_ns)};
  const int64_t last = std::max(now_ns(), times.end);
  report.seconds = static_cast<double>(last - times.measured) / kNsPerSecond;
  return report;
}

int64_t SteadyNs() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * kNsPerSecond + t.tv_nsec;
}

}  // namespace firn
