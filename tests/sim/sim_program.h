#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
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
// --seed today: seeds that depend on the date in UTC, printed with the result. --steps: starts no
// further seed after this number of steps. --duplicates: only an id that is issued twice counts as
// a violation. --digests: prints a digest of each seed's writes to the registry, to compare two
// builds.
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

// A simulation: worlds, each created from a seed, and the mutants that the worlds must catch.
struct SimProgram {
  // Runs the world of a seed, with the mutant of that number (-1: none). Adds its counts to
  // `counts`. Throws a std::runtime_error if a promise was broken.
  using RunWorld = std::function<void(uint64_t seed, int mutant, const SimArguments& arguments,
                                      SimCounts& counts)>;

  std::string_view name;
  std::vector<std::string_view> mutants{};
  RunWorld run{};
  // A run of at least `seeds_for_all` seeds without a mutant fails if one of these counts is 0,
  // because such events would not be tested.
  std::vector<std::string_view> must_happen{};
  uint64_t seeds_for_all = 50;
};

// Prints the digest of a world's writes, if --digests is set.
void TellDigest(const SimArguments& arguments, uint64_t seed, uint64_t digest);

// Runs one seed after another until one fails or a limit is reached, or does so for each requested
// mutant. Prints the result and returns the exit code: 0 if no promise was broken, or every mutant
// was caught; 1 otherwise; 2 for invalid arguments.
int RunSimProgram(const SimProgram& program, int argc, char** argv);

// An error that a simulation injects.
template <typename Kind>
struct MutantRow {
  Kind mutant;
  std::string_view name;
  std::string_view breaks = "";  // part of what() of the violation that must catch it
};

// Runs the program with worlds of this type.
template <typename World, typename Kind, size_t N>
int RunSim(SimProgram program, const MutantRow<Kind> (&mutants)[N], int argc, char** argv) {
  for (const MutantRow<Kind>& row : mutants) program.mutants.push_back(row.name);
  program.run = [&](uint64_t seed, int mutant, const SimArguments& arguments, SimCounts& counts) {
    const MutantRow<Kind> row = mutant < 0 ? MutantRow<Kind>{Kind::kNone, ""} : mutants[mutant];
    World world(seed, row.mutant, arguments);
    std::string violation;
    try {
      world.Run();
    } catch (const std::runtime_error& error) {
      violation = error.what();
    }
    counts = world.Counts();
    TellDigest(arguments, seed, world.digest());
    // Another violation does not count as catching the mutant.
    if (!violation.empty() && violation.find(row.breaks) != std::string::npos) {
      throw std::runtime_error(violation + " [" + world.text() + "]");
    }
  };
  return RunSimProgram(program, argc, argv);
}

}  // namespace firn
