#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace firn {

// Command line of a simulation:
//
//   [--seed N] [--seeds N] [--steps N] [--seconds N] [--mutant NAME] [--mutants] [--duplicates]
//   [--trace] [--digests]
//
// --seconds applies to all seeds together, or to each mutant; --seeds and --steps remove that
// limit.
//
// --seed today: seeds that depend on the date in UTC, printed with the result.
// --steps: starts no other seed once so many steps have been counted.
// --duplicates: only an id that is issued twice counts as a violation.
// --digests: prints a digest of each seed's writes to the registry, to compare two builds.
struct SimArguments {
  uint64_t seed = 1;
  uint64_t seeds = UINT64_MAX;
  int64_t steps = INT64_MAX;
  double seconds = 10;
  std::string_view mutant{};
  bool all_mutants = false;
  bool duplicates = false;
  bool trace = false;
  bool digests = false;
};

// Counts of a world, by name.
using SimCounts = std::vector<std::pair<std::string_view, int64_t>>;

// A simulation: worlds, each created from a seed, and the errors that its worlds must find.
struct SimProgram {
  // Runs the world of a seed, with the mutant of that number or with none (-1), adds its counts to
  // `counts`, and throws a std::runtime_error if a promise was broken.
  using RunWorld = std::function<void(uint64_t seed, int mutant, const SimArguments& arguments,
                                      SimCounts& counts)>;

  std::string_view name;
  std::vector<std::string_view> mutants;
  RunWorld run;
  // A run of at least `seeds_for_all` seeds without a mutant fails if one of these counts is 0:
  // what never happens is not tested.
  std::vector<std::string_view> must_happen{};
  uint64_t seeds_for_all = 50;
};

// Prints the digest of a world's writes, if --digests is set.
void TellDigest(const SimArguments& arguments, uint64_t seed, uint64_t digest);

// Runs seed after seed from the first one on, until one fails, or the number or the time is
// reached; or does so for each requested mutant. Prints the result and returns the exit code: 0 if
// no promise was broken, or every mutant was caught; 1 otherwise; 2 for wrong arguments.
int RunSimProgram(const SimProgram& program, int argc, char** argv);

}  // namespace firn
