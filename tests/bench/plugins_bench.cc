// The cost of each plugin per call, compared with the same call without it, all in one run:
//   build/release/bin/plugins_bench
// `Call<...>` is one Issuer::Issue with a strategy that only counts, for 1 and 100 ids.
// `FloorTenBlocks` is the ten AES calls of one obfuscated id.

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/time/clock.h"
#include "server/issue/issuer.h"
#include "server/plugins/history.h"
#include "server/plugins/limit.h"
#include "server/plugins/obfuscate.h"
#include "server/plugins/rate.h"

namespace firn {
namespace {

class NoRejections final : public RejectionHandler {
 public:
  void OnRefusal(const Request&, const Refusal&) override {}
};

// The cheapest possible numbers, so that the rest is the cost of the plugins.
class Counter final : public Strategy {
 public:
  std::string_view name() const override { return "counter"; }
  Status Start() override { return {}; }
  bool TryOne(Method, int64_t* id) override {
    *id = next_.fetch_add(1, std::memory_order_relaxed) % 900'000;
    return true;
  }
  Verdict Issue(IssueCall& call) override {
    const int64_t first = next_.fetch_add(call.missing(), std::memory_order_relaxed) % 900'000;
    call.Add({first, call.missing(), 1});
    return Verdict::kIssued;
  }
  int64_t count_max() const override { return 100'000; }
  void Close() override {}
  void Stop() override {}

 private:
  std::atomic<int64_t> next_{0};
};

class Nothing final : public Plugin {
 public:
  std::string_view name() const override { return "nothing"; }
  int order() const override { return 0; }
};

using Plugins = std::vector<std::shared_ptr<Plugin>>;

struct Bench {
  explicit Bench(Plugins plugins) {
    if (!issuer.Set({"order", std::make_shared<Counter>(), std::move(plugins)}).ok()) Die("no tag");
    tag = issuer.Resolve("order");
  }

  NoRejections rejections;
  Issuer issuer{rejections};
  const Tag* tag = nullptr;
};

template <Plugins (*kMake)()>
Bench& Shared() {
  static Bench bench(kMake());
  return bench;
}

// A call for state.range(0) ids.
template <Plugins (*kMake)()>
void Call(benchmark::State& state) {
  Bench& bench = Shared<kMake>();
  IssueCall call;
  for (auto _ : state) {
    call.Begin(*bench.tag, {.tag = "order", .count = state.range(0)});
    if (bench.issuer.Issue(call) != Verdict::kIssued) state.SkipWithError("refused");
    benchmark::DoNotOptimize(call.runs().size());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

Plugins NoPlugin() { return {}; }
Plugins OneIdle() { return {std::make_shared<Nothing>()}; }
Plugins Rate() { return {std::make_shared<RatePlugin>()}; }
Plugins Limit() {
  const LimitPlugin::Options all{.per_second = 100'000'000, .burst = 1'000'000'000};
  return {std::make_shared<LimitPlugin>(SystemClock(), all)};
}

// The queue is so large that the writer always leaves room in it; otherwise dropping would be
// measured.
Plugins HistoryOn() {
  static const auto folder =
      std::filesystem::temp_directory_path() / Cat("firn-plugins-bench-", getpid());
  static int made = 0;  // a file belongs to one history
  std::filesystem::create_directory(folder);
  const std::string path = folder / Cat(made++);
  auto history = std::make_shared<History>(
      SystemClock(), History::Options{.file = {.path = path, .bytes_max = 16 << 20, .files_max = 1},
                                      .queue_bytes_max = 64 << 20});
  if (!history->Start().ok()) Die("no history");
  if (made == 1) std::atexit([] { std::filesystem::remove_all(folder); });
  return {std::make_shared<HistoryPlugin>(std::move(history), "order")};
}

std::shared_ptr<const BlockCipher> Aes() {
  static const auto cipher = *MakeAes(SecretKey(std::vector<uint8_t>(32, 7)));
  return cipher;
}

template <int kWidth>
Plugins Obfuscate() {
  return {*ObfuscatePlugin::Make(Aes(), "order", kWidth)};
}

Plugins AllFour() {
  Plugins all;
  for (const Plugins& one : {Limit(), Rate(), HistoryOn(), Obfuscate<9>()}) all.push_back(one[0]);
  return all;
}

BENCHMARK(Call<NoPlugin>)->Arg(1)->Arg(100)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(Call<OneIdle>)->Arg(1)->Arg(100)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(Call<Limit>)->Arg(1)->Arg(100)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(Call<Rate>)->Arg(1)->Arg(100)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(Call<HistoryOn>)->Arg(1)->Arg(100)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(Call<Obfuscate<9>>)->Arg(1)->Arg(100)->Arg(10'000)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(Call<Obfuscate<18>>)->Arg(1)->Arg(100)->Arg(10'000)->Threads(1)->UseRealTime();
BENCHMARK(Call<AllFour>)->Arg(1)->Arg(100)->Threads(1)->Threads(2)->UseRealTime();

// The floor of obfuscate: the ten calls of the cipher that one id needs.
void FloorTenBlocks(benchmark::State& state) {
  std::vector<uint8_t> blocks(static_cast<size_t>(state.range(0)) * BlockCipher::kBlockBytes);
  for (auto _ : state) {
    for (int round = 0; round < 10; ++round) {
      benchmark::DoNotOptimize(Aes()->Encrypt(blocks.data(), static_cast<size_t>(state.range(0))));
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(FloorTenBlocks)->Arg(1)->Arg(64)->UseRealTime();

void FloorClockRead(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(SystemClock().Wall());
}
BENCHMARK(FloorClockRead)->UseRealTime();

}  // namespace
}  // namespace firn
