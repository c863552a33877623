// Simulates owners of partitions under faults, one seed after another, until the time limit.
// sim_program.h describes the arguments.

#include "tests/sim/owners/owners_mutants.h"
#include "tests/sim/owners/owners_world.h"
#include "tests/sim/sim_program.h"

namespace firn {
namespace {

void RunWorld(uint64_t seed, int mutant, const SimArguments& arguments, SimCounts& counts) {
  OwnersWorld world(seed, static_cast<OwnersMutant>(mutant + 1), arguments.trace);
  world.Run();
  counts = {{"steps", static_cast<int64_t>(world.steps())},
            {"numbers", world.numbers()},
            {"takeovers", world.takeovers()},
            {"releases", world.releases()},
            {"copies", world.copies()},
            {"rollbacks", world.rollbacks()}};
  TellDigest(arguments, seed, world.digest());
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) {
  firn::SimProgram program{
      .name = "owners_sim",
      .mutants = {firn::kOwnersMutants.begin(), firn::kOwnersMutants.end()},
      .run = firn::RunWorld,
      .must_happen = {"numbers", "takeovers", "releases", "copies", "rollbacks"}};
  return firn::RunSimProgram(program, argc, argv);
}
