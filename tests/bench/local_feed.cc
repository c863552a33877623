// firn-local-feed: how many ids per second one server gives many threads through local ranges, and
// the network traffic for it.
//
//   firn-front-server --port=7609 &
//   firn-local-feed --port=7609
//
// The ceiling is the layout's. Only the client's IO thread talks to the server, except for calls
// that find no ids in memory; their number is printed.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gflags/gflags.h>

#include "client/client.h"
#include "client/local_ranges.h"
#include "common/id/layout.h"

DEFINE_int32(port, 7609, "loopback port of the server");
DEFINE_int32(threads, 8, "callers");
DEFINE_int32(measure_ms, 2000, "after half a second of warming up");
DEFINE_string(layout, "firn", "layout of the server's ids");

namespace firn {
namespace {

int64_t NowNs() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// Processor time that the client's IO thread has used.
int64_t IoThreadCpuNs(Client& client) {
  std::promise<int64_t> told;
  client.GetId("default", [&told](const Result<int64_t>&) {
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    told.set_value(int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec);
  });
  return told.get_future().get();
}

// Counters up to a moment.
struct Mark {
  explicit Mark(Client& client)
      : counters(client.counters()), ns(NowNs()), cpu_ns(IoThreadCpuNs(client)) {}

  const ClientCounters counters;
  const int64_t ns, cpu_ns;
};

void Show(const Mark& from, const Mark& to) {
  const double seconds = static_cast<double>(to.ns - from.ns) / 1e9;
  const auto rate = [&](uint64_t ClientCounters::*counter) {
    return static_cast<double>(to.counters.*counter - from.counters.*counter) / seconds;
  };
  const Layout layout = Layout::Parse(FLAGS_layout).value();
  const double ceiling =
      static_cast<double>(layout.ids_per_tick()) * 1000.0 / static_cast<double>(layout.tick_ms());
  const double ids = rate(&ClientCounters::local_taken);
  std::printf("%d threads: %.0f ids a second, x %.3f of the layout's %.0f\n", FLAGS_threads, ids,
              ids / ceiling, ceiling);
  const double awaited = rate(&ClientCounters::local_awaited);
  std::printf("network: %.2f %% of a core, %.0f requests a second\n",
              static_cast<double>(to.cpu_ns - from.cpu_ns) / 1e7 / seconds,
              rate(&ClientCounters::attempts));
  std::printf("calls a second that waited for a fetch: %.0f, that asked for themselves: %.0f\n",
              awaited, rate(&ClientCounters::local_missed) - awaited);
}

int Feed() {
  Client client({.servers = "list://127.0.0.1:" + std::to_string(FLAGS_port),
                 .local_ranges = LocalRanges({LocalTag::Snowflake("default")})});
  std::atomic<uint64_t> failed = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < FLAGS_threads; ++i) {
    threads.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) failed += client.GetId("default").ok() ? 0U : 1U;
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const Mark from(client);
  std::this_thread::sleep_for(std::chrono::milliseconds(FLAGS_measure_ms));
  const Mark to(client);
  threads.clear();
  Show(from, to);
  if (failed > 0) std::printf("failed calls: %llu\n", static_cast<unsigned long long>(failed));
  return failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return firn::Feed();
}
