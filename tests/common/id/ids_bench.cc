// Measures the cost of an id as a value: packing, unpacking, texts. Run it while the machine is
// idle: build/release/bin/ids_bench tools/bench/FIGURES.md contains the results and the values for
// comparison.

#include <charconv>
#include <string>

#include <benchmark/benchmark.h>

#include "common/id/layout.h"
#include "common/id/text_form.h"
#include "common/text/text_template.h"
#include "common/time/entropy.h"

namespace firn {
namespace {

constexpr int64_t kId = 1169786042799259000;
const WallMs kIssued(1715123345042);

// Returns a layout that is known only at run time, as in a server.
Layout LayoutAtRunTime(const char* text) {
  Layout layout = Layout::Parse(text).value();
  benchmark::DoNotOptimize(layout);
  return layout;
}

// Lower limits of the cost: three fields are assembled by shifts that the compiler knows, or by
// shifts that are known only at run time, as in a program that reads its layout at the start.
void FloorKnownShifts(benchmark::State& state) {
  int64_t tick = 1;
  uint64_t sequence = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(tick);
    benchmark::DoNotOptimize(sequence);
    int64_t id = tick << 22 | int64_t{5} << 12 | static_cast<int64_t>(sequence);
    benchmark::DoNotOptimize(id);
  }
}
BENCHMARK(FloorKnownShifts);

void FloorShifts(benchmark::State& state) {
  struct Shifts {
    int tick, machine, sequence;
  } shifts{22, 12, 0};
  benchmark::DoNotOptimize(shifts);
  const uint64_t base = uint64_t{5} << shifts.machine;
  uint64_t tick = 1;
  uint64_t sequence = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(tick);
    benchmark::DoNotOptimize(sequence);
    uint64_t id = base | tick << shifts.tick | sequence << shifts.sequence;
    benchmark::DoNotOptimize(id);
  }
}
BENCHMARK(FloorShifts);

void PackUnchecked(benchmark::State& state, const char* text) {
  const Layout layout = LayoutAtRunTime(text);
  const uint64_t base = layout.BaseBits(MachineId(5), 0);
  int64_t tick = 1;
  uint64_t sequence = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(tick);
    benchmark::DoNotOptimize(sequence);
    int64_t id = layout.PackUnchecked(base, Tick(tick), sequence);
    benchmark::DoNotOptimize(id);
  }
}
BENCHMARK_CAPTURE(PackUnchecked, firn, "firn");
BENCHMARK_CAPTURE(PackUnchecked, vesta, "vesta-max-peak");

void Pack(benchmark::State& state, const char* text) {
  const Layout layout = LayoutAtRunTime(text);
  IdFields fields{Tick(1'000'000), MachineId(5), 77};
  for (auto _ : state) {
    benchmark::DoNotOptimize(fields);
    Result<int64_t> id = layout.Pack(fields);
    benchmark::DoNotOptimize(id);
  }
}
BENCHMARK_CAPTURE(Pack, firn, "firn");
BENCHMARK_CAPTURE(Pack, vesta, "vesta-max-peak");

void Unpack(benchmark::State& state, const char* text, int64_t id) {
  const Layout layout = LayoutAtRunTime(text);
  for (auto _ : state) {
    benchmark::DoNotOptimize(id);
    Result<IdFields> fields = layout.Unpack(id);
    benchmark::DoNotOptimize(fields);
  }
}
BENCHMARK_CAPTURE(Unpack, firn, "firn", kId);
BENCHMARK_CAPTURE(Unpack, vesta, "vesta-max-peak", 2319542600899494910);

void TickAt(benchmark::State& state, const char* text) {
  const Layout layout = LayoutAtRunTime(text);
  int64_t ms = kIssued.ms();
  for (auto _ : state) {
    benchmark::DoNotOptimize(ms);
    int64_t tick = layout.TickAt(WallMs(ms)).count();
    benchmark::DoNotOptimize(tick);
  }
}
BENCHMARK_CAPTURE(TickAt, of_1_ms, "firn");
BENCHMARK_CAPTURE(TickAt, of_1_s, "vesta-max-peak");

void FloorToChars(benchmark::State& state) {
  int64_t id = kId;
  char text[24];
  for (auto _ : state) {
    benchmark::DoNotOptimize(id);
    benchmark::DoNotOptimize(std::to_chars(text, text + sizeof text, id).ptr);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(FloorToChars);

void Write(benchmark::State& state, TextForm form) {
  int64_t id = kId;
  std::string text;
  for (auto _ : state) {
    benchmark::DoNotOptimize(id);
    text.clear();
    form.AppendTo(text, id);
    benchmark::DoNotOptimize(text.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK_CAPTURE(Write, decimal, TextForm{});
BENCHMARK_CAPTURE(Write, base62, TextForm{Base::kBase62});
BENCHMARK_CAPTURE(Write, crockford32, TextForm{Base::kCrockford32});

void Read(benchmark::State& state, Base base) {
  const std::string text = TextForm{base}.Format(kId);
  for (auto _ : state) {
    Result<int64_t> id = ParseId(base, text);
    benchmark::DoNotOptimize(id);
  }
}
BENCHMARK_CAPTURE(Read, decimal, Base::kDecimal);
BENCHMARK_CAPTURE(Read, base62, Base::kBase62);
BENCHMARK_CAPTURE(Read, crockford32, Base::kCrockford32);

void WriteTemplate(benchmark::State& state, const char* text, const char* zone) {
  const Result<TimeZone> loaded = TimeZone::Load(zone);
  if (!loaded.ok()) return state.SkipWithError("no such zone here");
  const TextTemplate made = TextTemplate::Parse(text, *loaded).value();
  std::string out;
  for (auto _ : state) {
    out.clear();
    made.AppendTo(out, kId, kIssued);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK_CAPTURE(WriteTemplate, date_id_utc, "{date:%y%m%d}{id:09}", "UTC");
BENCHMARK_CAPTURE(WriteTemplate, date_id_berlin, "{date:%y%m%d}{id:09}", "Europe/Berlin");
BENCHMARK_CAPTURE(WriteTemplate, invoice, "INV-{id:base32}", "UTC");

}  // namespace
}  // namespace firn
