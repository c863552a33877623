// Simulates claims under faults, one seed after another, until the time limit. sim_program.h
// describes the arguments.

#include "tests/sim/mutants.h"
#include "tests/sim/world.h"

int main(int argc, char** argv) {
  return firn::RunSim<firn::SimWorld>({.name = "claim_sim"}, firn::kMutants, argc, argv);
}
