// Simulates claims under faults, seed after seed, until the time is over; sim_program.h describes
// the arguments.

#include "tests/sim/mutants.h"
#include "tests/sim/sim_program.h"
#include "tests/sim/violation.h"
#include "tests/sim/world.h"

namespace firn {
namespace {

void RunWorld(uint64_t seed, int mutant, const SimArguments& arguments, SimCounts& counts) {
  const Mutant liar = mutant < 0 ? Mutant::kNone : kMutants[static_cast<size_t>(mutant)].mutant;
  SimWorld world(seed, liar, !arguments.duplicates, arguments.trace);
  const auto count = [&] {
    counts = {{"steps", static_cast<int64_t>(world.steps())},
              {"ids", static_cast<int64_t>(world.ids())}};
    TellDigest(arguments, seed, world.digest());
  };
  try {
    world.Run();
  } catch (const Violation& violation) {
    count();
    throw std::runtime_error(violation.what() + (" [" + world.sizes().text() + "]"));
  }
  count();
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) {
  firn::SimProgram program{.name = "claim_sim", .mutants = {}, .run = firn::RunWorld};
  for (const firn::MutantName& mutant : firn::kMutants) program.mutants.push_back(mutant.name);
  return firn::RunSimProgram(program, argc, argv);
}
