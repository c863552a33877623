#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace firn {

// What a simulation is told by its command line:
//
//   [--seed N] [--seeds N] [--steps N] [--seconds N] [--mutant NAME] [--mutants] [--duplicates]
//   [--trace] [--digests]
//
// The --seconds are for all seeds together, or for each mutant; --seeds and --steps end their
// limit.
// --steps: no other seed once so many steps have been counted.
// --duplicates: nothing counts but an id that is given out twice.
// --digests: of each seed's writes to the registry, by which two builds are compared.
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

// What a world counted, by name.
using SimCounts = std::vector<std::pair<std::string_view, int64_t>>;

// A simulation: worlds, each of them made from a seed, and the errors that its worlds have to find.
struct SimProgram {
  // Runs the world of a seed, with the mutant of that number or with none (-1), adds what it counts
  // to `counts`, and throws a std::runtime_error where a promise was broken.
  using RunWorld = std::function<void(uint64_t seed, int mutant, const SimArguments& arguments,
                                      SimCounts& counts)>;

  std::string_view name;
  std::vector<std::string_view> mutants;
  RunWorld run;
};

// Prints the digest of a world's writes, if that was asked for.
void TellDigest(const SimArguments& arguments, uint64_t seed, uint64_t digest);

// Seed after seed from the first one on, until one fails, or the number or the time is reached; or
// so for each mutant asked for. Says what came of it. The exit code: 0 when no promise was broken,
// or every mutant was caught; 1 otherwise; 2 for wrong arguments.
int RunSimProgram(const SimProgram& program, int argc, char** argv);

}  // namespace firn
