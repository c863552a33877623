// firn-one-transport: whether blocking calls could do without sockets of their own.
//
//   build/release/bin/firn-one-transport
//
// on a machine that does nothing else; it starts the server beside itself. The same blocking call,
// by 1 thread and by 8, in turns:
//
//   sockets  as Client makes it: the calling thread sends and receives on a socket of its own
//   hedged   through the IO thread's pipelines, as Client does it today where calls are hedged:
//            the caller sleeps on a condition
//   waited   through the IO thread's pipelines, the caller asleep on one atomic, which is the least
//            that a caller in another thread can pay
//
// The blocking sockets may go if pipelines keep 0.8 of their rate at 8 threads, and cost a single
// caller at most 25 us more in the middle. Then client/socket and BlockingCaller go, every call is
// made as Engine::CallThroughIoThread makes it, asleep on an atomic if `hedged` would not do,
// ClientOptions::blocking_connections means nothing any more, and TLS is built once, in Pipeline.
// Otherwise both stay, TLS is built twice, and what they do alike lies below both: WireCodec,
// IdCheck, Fleet::Admit.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <latch>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gflags/gflags.h>

#include "client/client.h"
#include "tests/support/process.h"

DEFINE_int32(rounds, 9, "rounds; medians are shown");
DEFINE_int32(measure_ms, 1000, "of each round, way and number of threads");
DEFINE_string(connections, "1,2,8", "pipelines to the server, to be tried one after the other");

namespace firn {
namespace {

constexpr int kMany = 8;
constexpr double kRateKept = 0.8;
constexpr double kMoreUsMax = 25;

int64_t NowNs() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// What this process has used of the processors; the server is another one.
int64_t CpuNs() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// What one way does, a round an entry.
struct Speed {
  std::vector<double> rate;       // calls a second
  std::vector<double> middle_us;  // half of the calls took at most so long
  std::vector<double> late_us;    // 99 of 100
  std::vector<double> cpu_us;     // of the client, for each call
};

using Call = std::function<bool()>;

// `threads` threads call for a round's time.
void Measure(const Call& call, int threads, Speed& speed) {
  std::vector<std::vector<double>> took(static_cast<size_t>(threads));
  std::atomic<bool> stop = false, failed = false;
  std::latch ready(threads + 1);
  std::vector<std::jthread> callers;
  for (auto& mine : took) {
    callers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) call();
      mine.reserve(1'000'000);
      ready.arrive_and_wait();
      for (int64_t began = NowNs(); !stop;) {
        if (!call()) failed = true;
        const int64_t ended = NowNs();
        mine.push_back(static_cast<double>(ended - began) / 1e3);
        began = ended;
      }
    });
  }
  ready.arrive_and_wait();
  const int64_t began = NowNs(), cpu = CpuNs();
  std::this_thread::sleep_for(Milliseconds(FLAGS_measure_ms));
  stop = true;
  const int64_t ended = NowNs(), cpu_ended = CpuNs();
  callers.clear();
  if (failed) std::fprintf(stderr, "a call failed\n");
  std::vector<double> all;
  for (const auto& mine : took) all.insert(all.end(), mine.begin(), mine.end());
  if (all.empty()) return;
  std::sort(all.begin(), all.end());
  const auto calls = static_cast<double>(all.size());
  speed.rate.push_back(calls * 1e9 / static_cast<double>(ended - began));
  speed.middle_us.push_back(all[all.size() / 2]);
  speed.late_us.push_back(all[all.size() * 99 / 100]);
  speed.cpu_us.push_back(static_cast<double>(cpu_ended - cpu) / 1e3 / calls);
}

// A blocking call made of an asynchronous one.
bool WaitFor(Client& client) {
  enum : int { kUnderWay, kGiven, kRefused };
  thread_local std::atomic<int> end;  // the IO thread may still touch it when the call has returned
  end = kUnderWay;
  client.GetId("default", [&end = end](const Result<int64_t>& id) {
    end.store(id.ok() ? kGiven : kRefused, std::memory_order_release);
    end.notify_one();
  });
  end.wait(kUnderWay, std::memory_order_acquire);
  return end.load(std::memory_order_relaxed) == kGiven;
}

ClientOptions OptionsFor(int port, int connections) {
  return {.servers = "list://127.0.0.1:" + std::to_string(port),
          .deadline = Milliseconds(2'000),
          .attempt_limit = Milliseconds(1'000),
          .async_connections = connections};
}

void Show(const std::string& way, int threads, const Speed& speed) {
  std::printf(
      "%-8s %d threads: %8.0f calls a second, %7.1f us in the middle, %8.1f at 99%%, "
      "%6.1f of processor\n",
      way.c_str(), threads, Median(speed.rate), Median(speed.middle_us), Median(speed.late_us),
      Median(speed.cpu_us));
}

// Whether pipelines would do, by what was agreed before it was measured.
void Judge(const std::string& way, std::map<std::string, std::map<int, Speed>>& of) {
  const double kept = Median(of[way][kMany].rate) / Median(of["sockets"][kMany].rate);
  const double more_us = Median(of[way][1].middle_us) - Median(of["sockets"][1].middle_us);
  const bool would_do = kept >= kRateKept && more_us <= kMoreUsMax;
  std::printf(
      "%-8s keeps %.2f of the rate at %d threads (%.1f at least), and costs one caller "
      "%.1f us more (%.0f at most): %s\n",
      way.c_str(), kept, kMany, kRateKept, more_us, kMoreUsMax,
      would_do ? "the blocking sockets may go" : "both transports stay");
}

int Compare(int port, int connections) {
  Client plain(OptionsFor(port, connections));
  ClientOptions hedging = OptionsFor(port, connections);
  hedging.hedge_after = hedging.deadline;  // never
  Client hedged(std::move(hedging));
  const auto reached = [&] { return plain.GetId("default").ok(); };
  if (!Eventually(Milliseconds(10'000), reached)) {
    std::fprintf(stderr, "the server does not answer\n");
    return 1;
  }
  const std::map<std::string, Call> ways = {
      {"sockets", [&plain] { return plain.GetId("default").ok(); }},
      {"hedged", [&hedged] { return hedged.GetId("default").ok(); }},
      {"waited", [&plain] { return WaitFor(plain); }}};
  std::map<std::string, std::map<int, Speed>> of;
  for (int round = 0; round < FLAGS_rounds; ++round) {
    for (const auto& [way, call] : ways) {
      for (const int threads : {1, kMany}) Measure(call, threads, of[way][threads]);
    }
  }
  std::printf("--- %d pipelines\n", connections);
  for (const auto& [way, call] : ways) {
    for (const int threads : {1, kMany}) Show(way, threads, of[way][threads]);
  }
  Judge("hedged", of);
  Judge("waited", of);
  std::fflush(stdout);
  return 0;
}

int Run() {
  double load = 0;
  getloadavg(&load, 1);
  std::printf("load of the machine before: %.1f%s\n", load,
              load > 0.5 ? "; figures of a busy machine decide nothing" : "");
  const int port = FreePort();
  const Process server({BuiltProgram("firn-front-server"), "--port=" + std::to_string(port)});
  std::string_view rest = FLAGS_connections;
  while (!rest.empty()) {
    const std::string one(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    if (const int failed = Compare(port, std::stoi(one)); failed != 0) return failed;
  }
  return 0;
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return firn::Run();
}
