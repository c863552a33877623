// Simulates segment tags under faults, seed after seed, until the time is over; sim_program.h
// describes the arguments.

#include <string_view>

#include "tests/sim/segment/segment_mutants.h"
#include "tests/sim/segment/segment_violation.h"
#include "tests/sim/segment/segment_world.h"
#include "tests/sim/sim_program.h"

namespace firn {
namespace {

void RunWorld(uint64_t seed, int mutant, const SimArguments& arguments, SimCounts& counts) {
  const SegmentMutantName liar = mutant < 0 ? SegmentMutantName{SegmentMutant::kNone, "", ""}
                                            : kSegmentMutants[static_cast<size_t>(mutant)];
  SegmentWorld world(seed, liar.mutant, arguments.trace);
  const auto count = [&] {
    counts = {{"steps", static_cast<int64_t>(world.steps())},
              {"numbers", static_cast<int64_t>(world.numbers())},
              {"wasted", world.wasted()},
              {"losses", world.lost()},
              {"periods", static_cast<int64_t>(world.periods())}};
    TellDigest(arguments, seed, world.digest());
  };
  try {
    world.Run();
  } catch (const SegmentViolation& violation) {
    count();
    // Another violation that a mutant causes does not count as catching it.
    if (std::string_view(violation.what()).find(liar.breaks) != std::string_view::npos) throw;
  }
  count();
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) {
  firn::SimProgram program{.name = "segment_sim", .mutants = {}, .run = firn::RunWorld};
  for (const firn::SegmentMutantName& mutant : firn::kSegmentMutants) {
    program.mutants.push_back(mutant.name);
  }
  return firn::RunSimProgram(program, argc, argv);
}
