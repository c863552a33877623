// firn-client-compare: the client library compared with bare clients of one server, in turns.
//
//   firn-front-server --port=7609 &
//   firn-client-compare --port=7609
//
// Blocking: 8 threads that call through firn::Client, which share its connections, and 8 threads
// that each send and receive on a socket of their own and read only the id of the answer;
// `pipeline`: 8 threads that share a BarePipeline.
// Asynchronous: 8 calls in flight on 8 connections of one IO thread, and the load generator at 8 x
// 1; `alike`: the load generator with the client's number of connections, over which the calls are
// spread.
//
//   firn-client-compare --paused --measure_ms=10000
//
// Starts three servers and compares the p99 of blocking calls while one of them is paused, from the
// moment of the pause on, with that while all three answer.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gflags/gflags.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/client.h"
#include "common/base/cat.h"
#include "tests/bench/bare_pipeline.h"
#include "tests/bench/dialect.h"
#include "tests/bench/load_client.h"
#include "tests/support/process.h"
#include "tools/bench/client_load.h"

DEFINE_int32(port, 7609, "loopback port of the server");
DEFINE_int32(rounds, 5, "rounds; medians are shown");
DEFINE_int32(measure_ms, 500, "of each round and client");
DEFINE_int32(threads, 8, "blocking callers");
DEFINE_bool(paused, false, "Compare only the p99 of calls with and without a paused server.");

namespace firn {
namespace {

using SteadyClock = std::chrono::steady_clock;

int64_t NowNs() { return SteadyClock::now().time_since_epoch().count(); }

int64_t CpuNs() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

struct Speed {
  double rate = 0;    // calls a second
  double cpu_us = 0;  // of this process, for each call
};

// Measures from its construction on.
class Stopwatch {
 public:
  Speed Stop(uint64_t calls) const {
    const auto n = static_cast<double>(std::max<uint64_t>(calls, 1));
    return {.rate = n * 1e9 / static_cast<double>(NowNs() - began_ns_),
            .cpu_us = static_cast<double>(CpuNs() - cpu_began_ns_) / 1e3 / n};
  }

 private:
  const int64_t began_ns_ = NowNs(), cpu_began_ns_ = CpuNs();
};

// Makes calls on `threads` threads, each with its own caller, within the round's time.
Speed FromThreads(const std::function<std::function<bool()>()>& make) {
  std::atomic<uint64_t> calls = 0;
  std::atomic<bool> stop = false, failed = false;
  std::latch ready(FLAGS_threads + 1);
  std::vector<std::jthread> threads;
  for (int i = 0; i < FLAGS_threads; ++i) {
    threads.emplace_back([&] {
      const std::function<bool()> call = make();
      for (int n = 0; n < 100; ++n) call();
      ready.arrive_and_wait();
      uint64_t done = 0;
      for (; !stop; ++done) failed = failed || !call();
      calls += done;
    });
  }
  ready.arrive_and_wait();
  const Stopwatch watch;
  std::this_thread::sleep_for(Milliseconds(FLAGS_measure_ms));
  stop = true;
  threads.clear();
  if (failed) std::fprintf(stderr, "a call failed\n");
  return watch.Stop(calls);
}

class BareSocket {
 public:
  BareSocket() : fd_(ConnectedSocket(static_cast<uint16_t>(FLAGS_port))) {}
  ~BareSocket() { close(fd_); }

  bool Call(const Dialect& dialect) {
    const std::string& request = dialect.request();
    if (send(fd_, request.data(), request.size(), MSG_NOSIGNAL) < 0) return false;
    for (size_t held = 0;;) {
      const ssize_t got = recv(fd_, buffer_ + held, sizeof buffer_ - held, 0);
      if (got <= 0) return false;
      held += static_cast<size_t>(got);
      const Dialect::Answer answer = dialect.Read({buffer_, held});
      if (answer.length != 0) return !answer.refused;
    }
  }

 private:
  const int fd_;
  char buffer_[4096];
};

Speed BareBlocking(const Dialect& dialect) {
  return FromThreads([&dialect]() -> std::function<bool()> {
    auto bare = std::make_shared<BareSocket>();
    return [bare, &dialect] { return bare->Call(dialect); };
  });
}

Speed PipelineBlocking(const Dialect& dialect) {
  BarePipeline bare(static_cast<uint16_t>(FLAGS_port), dialect);
  return FromThreads(
      [&bare]() -> std::function<bool()> { return [&bare] { return bare.Call(); }; });
}

Speed ClientBlocking(Client& client) {
  return FromThreads([&client]() -> std::function<bool()> {
    return [&client] { return client.GetId("default").ok(); };
  });
}

// Asynchronous calls in flight, each on its own connection.
constexpr int kInFlight = 8;

Speed BareAsync(const Dialect& dialect) {
  const Stopwatch watch;
  const auto report = RunLoad({.port = static_cast<uint16_t>(FLAGS_port),
                               .connections = kInFlight,
                               .warmup_ms = 0,
                               .measure_ms = FLAGS_measure_ms},
                              dialect, NowNs);
  if (!report.ok()) return {};
  return {.rate = report->rate(), .cpu_us = watch.Stop(report->answers).cpu_us};
}

// Each answer's callback makes the next call.
class Chains {
 public:
  explicit Chains(Client& client) : client_(client) {}

  Speed Run() {
    under_way_ = kInFlight;
    for (int i = 0; i < kInFlight; ++i) Next();
    std::this_thread::sleep_for(Milliseconds(50));
    const uint64_t before = answers_;
    const Stopwatch watch;
    std::this_thread::sleep_for(Milliseconds(FLAGS_measure_ms));
    const Speed speed = watch.Stop(answers_ - before);
    stop_ = true;
    while (under_way_ > 0) std::this_thread::yield();
    return speed;
  }

 private:
  void Next() {
    client_.GetId("default", [this](const Result<int64_t>& id) {
      answers_ += id.ok() ? 1U : 0U;
      stop_ ? void(--under_way_) : Next();
    });
  }

  Client& client_;
  std::atomic<uint64_t> answers_ = 0;
  std::atomic<int> under_way_ = 0;
  std::atomic<bool> stop_ = false;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double Median(const std::vector<Speed>& speeds, double Speed::*part) {
  std::vector<double> values;
  for (const Speed& speed : speeds) values.push_back(speed.*part);
  return Median(std::move(values));
}

void Show(const char* what, const std::vector<Speed>& ours, const std::vector<Speed>& bare) {
  const double rate = Median(ours, &Speed::rate), bare_rate = Median(bare, &Speed::rate);
  std::printf(
      "%-12s %9.0f a second, bare %9.0f: x %.2f; %5.2f us of processor a call, bare %5.2f\n", what,
      rate, bare_rate, rate / bare_rate, Median(ours, &Speed::cpu_us),
      Median(bare, &Speed::cpu_us));
}

int Compare() {
  const auto dialect = MakeDialect("thrift", "default");
  ClientOptions options{.servers = "list://127.0.0.1:" + std::to_string(FLAGS_port),
                        .deadline = Milliseconds(2'000),
                        .attempt_limit = Milliseconds(1'000)};
  Client client(options);
  options.connections = kInFlight;
  Client async_client(options);
  if (const auto id = client.GetId("default"); !id.ok()) {
    std::fprintf(stderr, "%s\n", id.status().ToString().c_str());
    return 1;
  }
  std::vector<Speed> bare_blocking, bare_pipeline, blocking, bare_async, async;
  for (int i = 0; i < FLAGS_rounds; ++i) {
    bare_blocking.push_back(BareBlocking(**dialect));
    bare_pipeline.push_back(PipelineBlocking(**dialect));
    blocking.push_back(ClientBlocking(client));
    bare_async.push_back(BareAsync(**dialect));
    async.push_back(Chains(async_client).Run());
  }
  Show("blocking", blocking, bare_blocking);
  Show("... pipeline", blocking, bare_pipeline);
  Show("asynchronous", async, bare_async);
  return 0;
}

bool AllHealthy(Client& client) {
  const ClusterView view = client.cluster();
  return !view.servers.empty() && std::ranges::all_of(view.servers, [](const SeenServer& server) {
    return server.health == ServerHealth::kHealthy;
  });
}

// The servers of a comparison, and their client.
class ThreeServers {
 public:
  bool Start() {
    std::string list = "list://";
    for (int i = 0; i < 3; ++i) {
      const int port = FreePort();
      list += Cat(i == 0 ? "" : ",", "127.0.0.1:", port);
      servers_.emplace_back(
          std::vector<std::string>{BuiltProgram("firn-front-server"), Cat("--port=", port)});
    }
    client_.emplace(ClientOptions{.servers = std::move(list)});
    return Recover();
  }

  // Makes calls for the round's time, while the first server is `paused` or all answer.
  Result<ClientLoadReport> Round(bool paused) {
    if (paused) servers_[0].Pause();
    auto report = RunClientLoad(*client_,
                                {.tag = "default",
                                 .threads = FLAGS_threads,
                                 .warmup_ms = 0,
                                 .measure_ms = FLAGS_measure_ms},
                                NowNs);
    if (paused) servers_[0].Resume();
    if (paused && !Recover()) return Unavailable("the paused server did not recover");
    return report;
  }

 private:
  // Calls until every server is healthy.
  bool Recover() {
    return Eventually(kPatience,
                      [this] { return client_->GetId("default").ok() && AllHealthy(*client_); });
  }

  std::vector<Process> servers_;
  std::optional<Client> client_;
};

int ComparePaused() {
  ThreeServers servers;
  if (!servers.Start()) return std::fprintf(stderr, "the servers did not start\n"), 1;
  std::vector<double> p99_us[2], longest_ms;
  uint64_t failed = 0;
  for (int i = 0; i < FLAGS_rounds; ++i) {
    for (const bool paused : {false, true}) {
      const Result<ClientLoadReport> report = servers.Round(paused);
      if (!report.ok()) return std::fprintf(stderr, "%s\n", report.status().message().c_str()), 1;
      const Histogram& latency = report->record.latency();
      p99_us[paused ? 1 : 0].push_back(static_cast<double>(latency.Quantile(0.99)) / 1e3);
      if (paused) longest_ms.push_back(static_cast<double>(latency.Quantile(1)) / 1e6);
      failed += report->record.failed();
    }
  }
  const double good = Median(p99_us[0]), paused = Median(p99_us[1]);
  std::printf(
      "p99 %.1f us while one of three servers is paused, %.1f us otherwise: x %.2f; "
      "longest call while paused %.1f ms; %llu calls failed\n",
      paused, good, paused / good, Median(longest_ms), static_cast<unsigned long long>(failed));
  return 0;
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return FLAGS_paused ? firn::ComparePaused() : firn::Compare();
}
