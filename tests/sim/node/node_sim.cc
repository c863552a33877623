// Simulates whole nodes under faults, seed after seed, until the time is over; sim_program.h
// describes the arguments.

#include <stdexcept>

#include "tests/sim/node/node_mutants.h"
#include "tests/sim/node/node_world.h"
#include "tests/sim/sim_program.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

void RunWorld(uint64_t seed, int mutant, const SimArguments& arguments, SimCounts& counts) {
  const NodeMutantName liar = mutant < 0 ? NodeMutantName{NodeMutant::kNone, "", 0, false}
                                         : kNodeMutants[static_cast<size_t>(mutant)];
  NodeWorld world(seed, liar.mutant, arguments.trace);
  const auto count = [&] {
    counts = {{"steps", static_cast<int64_t>(world.steps())},
              {"ids", static_cast<int64_t>(world.ids())}};
    TellDigest(arguments, seed, world.digest());
  };
  try {
    world.Run();
  } catch (const Violation& violation) {
    count();
    const bool own = liar.invariant == 0 || liar.invariant == violation.invariant();
    if (own) throw std::runtime_error(violation.what() + (" [" + world.text() + "]"));
  }
  count();
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) {
  firn::SimProgram program{.name = "node_sim", .mutants = {}, .run = firn::RunWorld};
  for (const firn::NodeMutantName& mutant : firn::kNodeMutants) {
    program.mutants.push_back(mutant.name);
  }
  return firn::RunSimProgram(program, argc, argv);
}
