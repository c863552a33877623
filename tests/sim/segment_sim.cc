// Simulates segment tags under faults, seed after seed, until the time is over.
//
//   segment_sim [--seed N] [--seeds N] [--seconds N] [--mutant NAME] [--mutants] [--trace]
//
// Exit code 0: no promise was broken, or with --mutant(s): every mutant was caught. 1: otherwise.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <glog/logging.h>

#include "common/clock.h"
#include "tests/sim/segment_violation.h"
#include "tests/sim/segment_world.h"

namespace firn {
namespace {

struct Arguments {
  uint64_t seed = 1;
  uint64_t seeds = UINT64_MAX;
  double seconds = 10;
  std::optional<SegmentMutant> mutant{};
  bool all_mutants = false;
  bool trace = false;
};

struct Tally {
  uint64_t seeds = 0, steps = 0, numbers = 0;
  int64_t wasted = 0, stopped = 0;
  std::string failure{};
  uint64_t failed_seed = 0;
};

double SecondsNow() { return static_cast<double>(SystemClock().Boot().ms()) / 1000; }

Tally RunSeeds(const Arguments& arguments, SegmentMutant mutant) {
  Tally tally;
  const double end = SecondsNow() + arguments.seconds;
  while (tally.seeds < arguments.seeds && SecondsNow() < end && tally.failure.empty()) {
    const uint64_t seed = arguments.seed + tally.seeds++;
    SegmentWorld world(seed, mutant, arguments.trace);
    try {
      world.Run();
    } catch (const SegmentViolation& violation) {
      tally.failed_seed = seed;
      tally.failure = violation.what();
    }
    tally.steps += world.steps();
    tally.numbers += world.numbers();
    tally.wasted += world.wasted();
    tally.stopped += world.stopped();
  }
  return tally;
}

bool CheckProduct(const Arguments& arguments) {
  const Tally tally = RunSeeds(arguments, SegmentMutant::kNone);
  std::printf("%llu seeds, %llu steps, %llu numbers, %lld wasted, %lld tags stopped\n",
              static_cast<unsigned long long>(tally.seeds),
              static_cast<unsigned long long>(tally.steps),
              static_cast<unsigned long long>(tally.numbers), static_cast<long long>(tally.wasted),
              static_cast<long long>(tally.stopped));
  if (tally.failure.empty()) return true;
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(tally.failed_seed),
              tally.failure.c_str());
  return false;
}

bool CheckMutant(const Arguments& arguments, const SegmentMutantName& mutant) {
  const Tally tally = RunSeeds(arguments, mutant.mutant);
  const bool caught = !tally.failure.empty();
  std::printf("%-20.*s %s after %llu seeds: %s\n", static_cast<int>(mutant.name.size()),
              mutant.name.data(), caught ? "caught" : "NOT CAUGHT",
              static_cast<unsigned long long>(tally.seeds), tally.failure.c_str());
  return caught;
}

std::optional<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (flag == "--mutants") {
      arguments.all_mutants = true;
    } else if (flag == "--trace") {
      arguments.trace = true;
    } else if (value == nullptr) {
      return std::nullopt;
    } else if (flag == "--seed") {
      arguments.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--seeds") {
      arguments.seeds = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--seconds") {
      arguments.seconds = std::strtod(argv[++i], nullptr);
    } else if (flag == "--mutant") {
      arguments.mutant = ParseSegmentMutant(argv[++i]);
      if (!arguments.mutant) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

int Main(int argc, char** argv) {
  const std::optional<Arguments> arguments = Parse(argc, argv);
  if (!arguments) {
    std::fprintf(stderr, "wrong arguments; see the head of tests/sim/segment_sim.cc\n");
    return 2;
  }
  FLAGS_minloglevel = arguments->trace ? google::GLOG_INFO : google::GLOG_FATAL;
  bool fine = true;
  if (!arguments->all_mutants && !arguments->mutant) return CheckProduct(*arguments) ? 0 : 1;
  for (const SegmentMutantName& mutant : kSegmentMutants) {
    if (arguments->mutant && *arguments->mutant != mutant.mutant) continue;
    fine &= CheckMutant(*arguments, mutant);
  }
  return fine ? 0 : 1;
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) { return firn::Main(argc, argv); }
