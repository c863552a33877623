// Simulates segment tags under faults, one seed after another, until the time limit. sim_program.h
// describes the arguments.

#include "tests/sim/segment/segment_mutants.h"
#include "tests/sim/segment/segment_world.h"

int main(int argc, char** argv) {
  return firn::RunSim<firn::SegmentWorld>({.name = "segment_sim",
                                           .must_happen = {"continued", "forgetful", "crossed"},
                                           .seeds_for_all = 80},
                                          firn::kSegmentMutants, argc, argv);
}
