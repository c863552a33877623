// Simulates claims under faults, seed after seed, until the time is over.
//
//   claim_sim [--seed N] [--seeds N] [--seconds N] [--mutant NAME] [--mutants]
//             [--duplicates] [--trace]
//
// --duplicates: nothing counts but an id that is given out twice.
// Exit code 0: no promise was broken, or with --mutant(s): every mutant was caught. 1: otherwise.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "tests/sim/violation.h"
#include "tests/sim/world.h"

namespace firn {
namespace {

struct Arguments {
  uint64_t seed = 1;
  uint64_t seeds = UINT64_MAX;
  double seconds = 10;
  std::optional<Mutant> mutant{};
  bool all_mutants = false;
  bool duplicates = false;
  bool trace = false;
};

struct Tally {
  uint64_t seeds = 0;
  uint64_t steps = 0;
  uint64_t ids = 0;
  std::optional<uint64_t> failed_seed{};
  std::string failure{};
};

double SecondsNow() { return static_cast<double>(SystemClock().Boot().ms()) / 1000; }

// Seeds from the first on, until one fails, or the number or the time is reached.
Tally RunSeeds(const Arguments& arguments, Mutant mutant) {
  Tally tally;
  const double end = SecondsNow() + arguments.seconds;
  while (tally.seeds < arguments.seeds && SecondsNow() < end) {
    const uint64_t seed = arguments.seed + tally.seeds++;
    SimWorld world(seed, mutant, !arguments.duplicates, arguments.trace);
    try {
      world.Run();
    } catch (const Violation& violation) {
      tally.failed_seed = seed;
      tally.failure = violation.what() + (" [" + world.sizes().text() + "]");
    }
    tally.steps += world.steps();
    tally.ids += world.ids();
    if (tally.failed_seed.has_value()) break;
  }
  return tally;
}

int RunHonest(const Arguments& arguments) {
  const double begin = SecondsNow();
  const Tally tally = RunSeeds(arguments, Mutant::kNone);
  const double seconds = SecondsNow() - begin;
  std::printf("claim_sim: seeds %llu to %llu, %llu steps, %llu ids, %.0f steps/s\n",
              static_cast<unsigned long long>(arguments.seed),
              static_cast<unsigned long long>(arguments.seed + tally.seeds - 1),
              static_cast<unsigned long long>(tally.steps),
              static_cast<unsigned long long>(tally.ids),
              static_cast<double>(tally.steps) / seconds);
  if (!tally.failed_seed.has_value()) return 0;
  std::printf("BROKEN in seed %llu: %s\nreplay with --seeds 1 --trace --seed %llu\n",
              static_cast<unsigned long long>(*tally.failed_seed), tally.failure.c_str(),
              static_cast<unsigned long long>(*tally.failed_seed));
  return 1;
}

int RunMutant(const Arguments& arguments, MutantName mutant) {
  const double begin = SecondsNow();
  const Tally tally = RunSeeds(arguments, mutant.mutant);
  const bool caught = tally.failed_seed.has_value();
  std::printf("mutant %-26s %s after %llu seeds, %llu steps, %.2f s%s%s\n",
              std::string(mutant.name).c_str(), caught ? "caught" : "NOT CAUGHT",
              static_cast<unsigned long long>(tally.seeds),
              static_cast<unsigned long long>(tally.steps), SecondsNow() - begin,
              caught ? ": " : "", tally.failure.c_str());
  return caught ? 0 : 1;
}

bool ReadNumber(const char* text, uint64_t& value) {
  const char* const end = text + std::strlen(text);
  return std::from_chars(text, end, value).ptr == end;
}

bool ParseArguments(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    uint64_t seconds = 0;
    if (name == "--trace") {
      arguments.trace = true;
    } else if (name == "--duplicates") {
      arguments.duplicates = true;
    } else if (name == "--mutants") {
      arguments.all_mutants = true;
    } else if (i + 1 == argc) {
      return false;
    } else if (name == "--seed") {
      if (!ReadNumber(argv[++i], arguments.seed)) return false;
    } else if (name == "--seeds") {
      if (!ReadNumber(argv[++i], arguments.seeds)) return false;
      arguments.seconds = 1e9;
    } else if (name == "--seconds") {
      if (!ReadNumber(argv[++i], seconds)) return false;
      arguments.seconds = static_cast<double>(seconds);
    } else if (name == "--mutant") {
      arguments.mutant = ParseMutant(argv[++i]);
      if (!arguments.mutant.has_value()) return false;
    } else {
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (!ParseArguments(argc, argv, arguments)) {
    std::fprintf(stderr,
                 "usage: claim_sim [--seed N] [--seeds N] [--seconds N] [--mutant NAME] "
                 "[--mutants] [--duplicates] [--trace]\n");
    return 2;
  }
  if (arguments.all_mutants) {
    int missed = 0;
    for (const MutantName& mutant : kMutants) missed += RunMutant(arguments, mutant);
    return missed == 0 ? 0 : 1;
  }
  if (arguments.mutant.has_value() && *arguments.mutant != Mutant::kNone) {
    for (const MutantName& mutant : kMutants) {
      if (mutant.mutant == *arguments.mutant) return RunMutant(arguments, mutant);
    }
  }
  return RunHonest(arguments);
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) { return firn::Main(argc, argv); }
