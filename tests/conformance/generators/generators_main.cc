// Rates of LocalGenerator and of the issuing core that a C++ program can embed: see
// ../generator_rates.py.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/client.h"
#include "client/lease/local_generator.h"
#include "common/json/json.h"
#include "server/issue/patient_caller.h"
#include "tests/bench/issue_fixture.h"

namespace firn {
namespace {

constexpr int kChecked = 4'000;  // ids of each thread that are compared with all others
constexpr int kBunch = 50;       // ids between two checks of the end

using Taking = std::function<int64_t()>;

double CpuNs() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

// Runs `work` on some threads.
void OnThreads(int threads, const std::function<void(int)>& work) {
  std::vector<std::jthread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(work, i);
}

int64_t Different(int threads, const Taking& take) {
  std::vector<int64_t> ids(static_cast<size_t>(threads) * kChecked);
  OnThreads(threads, [&](int thread) {
    const auto first = ids.begin() + static_cast<ptrdiff_t>(thread) * kChecked;
    std::generate(first, first + kChecked, take);
  });
  std::sort(ids.begin(), ids.end());
  return std::unique(ids.begin(), ids.end()) - ids.begin();
}

// Returns ids a second and nanoseconds of processor time an id.
std::pair<double, double> Round(int threads, Milliseconds length, const Taking& take) {
  std::atomic<bool> over = false;
  std::atomic<int64_t> count = 0;
  const double cpu = CpuNs();
  const auto began = SystemClock().BootMicros();
  std::jthread timer([&] {
    SleepFor(length);
    over = true;
  });
  OnThreads(threads, [&](int) {
    int64_t mine = 0;
    for (; !over.load(std::memory_order_relaxed); mine += kBunch) {
      for (int i = 0; i < kBunch; ++i) take();
    }
    count += mine;
  });
  const auto took = SystemClock().BootMicros() - began;
  const double ids = static_cast<double>(count);
  return {ids / (1e-6 * static_cast<double>(took.count())), (CpuNs() - cpu) / ids};
}

int Main(const std::string& servers, int threads, int rounds, Milliseconds length) {
  const Client client({.servers = servers});
  auto opened = client.OpenGenerator({.name = "rates"}, Milliseconds(30'000));
  if (!opened.ok()) {
    std::cerr << opened.status() << "\n";
    return 1;
  }
  LocalGenerator& local = **opened;
  IssueFixture core(Layout::Firn());
  PatientCaller caller(core.issuer, SystemClock(), Milliseconds(1'000));
  const std::vector<std::pair<std::string, Taking>> generators = {
      {"firn",
       [&local] {
         const Result<int64_t> id = local.Next();
         if (!id.ok()) Die(id.status().message());
         return *id;
       }},
      {"core", [&] {
         thread_local IssueCall call;
         int64_t id = 0;
         if (!caller.IssueOne(call, *core.tag, {.tag = "order"}, &id)) Die("no id");
         return id;
       }}};
  Json told;
  for (const auto& [name, take] : generators) {
    told[name] = {{"taken", threads * kChecked}, {"different", Different(threads, take)}};
    Round(threads, length, take);  // warms up
  }
  for (int i = 0; i < rounds; ++i) {
    for (const auto& [name, take] : generators) {
      const auto [rate, cpu] = Round(threads, length, take);
      told[name]["rates"].push_back(rate);
      told[name]["cpu"].push_back(cpu);
    }
  }
  std::cout << JsonText(told) << "\n";
  return 0;
}

}  // namespace
}  // namespace firn

int main(int, char** words) {
  return firn::Main(words[1], std::stoi(words[2]), std::stoi(words[3]),
                    firn::Milliseconds(std::stoi(words[4])));
}
