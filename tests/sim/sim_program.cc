#include "tests/sim/sim_program.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>

#include "common/base/hex.h"
#include "common/log/log.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"

namespace firn {
namespace {

constexpr int kNoMutant = -1;

struct Tally {
  uint64_t seeds = 0;
  double seconds = 0;
  SimCounts counts;
  std::optional<uint64_t> failed_seed{};
  std::string failure{};
};

double SecondsNow() { return static_cast<double>(SystemClock().Boot().ms()) / 1000; }

std::string TextOf(const SimCounts& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += ", " + std::to_string(count) + " " + std::string(name);
  }
  return text;
}

void Add(const SimCounts& more, SimCounts& sum) {
  for (const auto& [name, count] : more) {
    const auto named = [&, wanted = name](const auto& entry) { return entry.first == wanted; };
    const auto there = std::find_if(sum.begin(), sum.end(), named);
    if (there == sum.end()) {
      sum.emplace_back(name, count);
    } else {
      there->second += count;
    }
  }
}

int64_t CountOf(std::string_view wanted, const SimCounts& counts) {
  for (const auto& [name, count] : counts) {
    if (name == wanted) return count;
  }
  return 0;
}

void PrintLogged(const LogEntry& entry) { std::fprintf(stderr, "%s\n", entry.text.c_str()); }

Tally RunSeeds(const SimProgram& program, const SimArguments& arguments, int mutant) {
  Tally tally;
  const double begin = SecondsNow();
  while (tally.seeds < arguments.seeds && tally.seconds < arguments.seconds &&
         CountOf("steps", tally.counts) < arguments.steps && !tally.failed_seed.has_value()) {
    const uint64_t seed = arguments.seed + tally.seeds++;
    SimCounts counts;
    try {
      program.run(seed, mutant, arguments, counts);
    } catch (const std::runtime_error& violation) {
      tally.failed_seed = seed;
      tally.failure = violation.what();
    }
    Add(counts, tally.counts);
    tally.seconds = SecondsNow() - begin;
  }
  return tally;
}

bool EverythingHappened(const SimProgram& program, const Tally& tally) {
  if (tally.seeds < program.seeds_for_all) return true;
  bool all = true;
  for (const std::string_view name : program.must_happen) {
    if (CountOf(name, tally.counts) > 0) continue;
    std::printf("NEVER HAPPENED: %s\n", std::string(name).c_str());
    all = false;
  }
  return all;
}

bool IsHonest(const SimProgram& program, const SimArguments& arguments) {
  const Tally tally = RunSeeds(program, arguments, kNoMutant);
  std::printf("%s: %llu seeds from %llu on in %.1f s%s\n", std::string(program.name).c_str(),
              static_cast<unsigned long long>(tally.seeds),
              static_cast<unsigned long long>(arguments.seed), tally.seconds,
              TextOf(tally.counts).c_str());
  if (!tally.failed_seed.has_value()) return EverythingHappened(program, tally);
  std::printf("BROKEN in seed %llu: %s\nreplay with --seeds 1 --trace --seed %llu\n",
              static_cast<unsigned long long>(*tally.failed_seed), tally.failure.c_str(),
              static_cast<unsigned long long>(*tally.failed_seed));
  return false;
}

bool IsCaught(const SimProgram& program, const SimArguments& arguments, size_t mutant) {
  const Tally tally = RunSeeds(program, arguments, static_cast<int>(mutant));
  const bool caught = tally.failed_seed.has_value();
  std::printf("mutant %-26s %s after %llu seeds, %.2f s%s%s%s\n",
              std::string(program.mutants[mutant]).c_str(), caught ? "caught" : "NOT CAUGHT",
              static_cast<unsigned long long>(tally.seeds), tally.seconds,
              TextOf(tally.counts).c_str(), caught ? ": " : "", tally.failure.c_str());
  return caught;
}

template <typename Number>
bool ReadNumber(const char* text, Number& value) {
  const char* const end = text + std::strlen(text);
  return std::from_chars(text, end, value).ptr == end;
}

// 2026-11-28 gives 20261128000000.
uint64_t SeedOfToday() {
  uint64_t seed = 0;
  for (const char c : FormatRfc3339(SystemClock().Wall()).substr(0, 10)) {
    if (c != '-') seed = 10 * seed + static_cast<uint64_t>(c - '0');
  }
  return seed * 1'000'000;
}

bool ReadValue(std::string_view name, const char* text, SimArguments& arguments) {
  if (name == "--seed" && std::string_view(text) == "today") {
    return arguments.seed = SeedOfToday(), true;
  }
  if (name == "--seed") return ReadNumber(text, arguments.seed);
  if (name == "--seconds") return ReadNumber(text, arguments.seconds);
  if (name == "--mutant") return arguments.mutant = text, true;
  arguments.seconds = 1e9;
  if (name == "--steps") return ReadNumber(text, arguments.steps);
  return name == "--seeds" && ReadNumber(text, arguments.seeds);
}

bool ReadArguments(int argc, char** argv, SimArguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--trace") {
      arguments.trace = true;
      SendLogTo(PrintLogged);
    } else if (name == "--digests") {
      arguments.digests = true;
    } else if (name == "--duplicates") {
      arguments.duplicates = true;
    } else if (name == "--mutants") {
      arguments.all_mutants = true;
    } else if (i + 1 == argc || !ReadValue(name, argv[++i], arguments)) {
      return false;
    }
  }
  return true;
}

}  // namespace

void TellDigest(const SimArguments& arguments, uint64_t seed, uint64_t digest) {
  if (!arguments.digests) return;
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), ToHex(digest).c_str());
}

int RunSimProgram(const SimProgram& program, int argc, char** argv) {
  SimArguments arguments;
  bool understood = ReadArguments(argc, argv, arguments);
  std::vector<size_t> wanted;
  for (size_t i = 0; i < program.mutants.size(); ++i) {
    if (arguments.all_mutants || program.mutants[i] == arguments.mutant) wanted.push_back(i);
  }
  understood &= arguments.mutant.empty() || !wanted.empty();
  if (!understood) {
    std::fprintf(stderr, "%s: wrong arguments; tests/sim/sim_program.h explains them\n",
                 std::string(program.name).c_str());
    return 2;
  }
  if (wanted.empty()) return IsHonest(program, arguments) ? 0 : 1;
  size_t caught = 0;
  for (const size_t mutant : wanted) caught += IsCaught(program, arguments, mutant) ? 1U : 0U;
  return caught == wanted.size() ? 0 : 1;
}

}  // namespace firn
