// Simulates whole nodes under faults, one seed after another, until the time limit. sim_program.h
// describes the arguments.

#include "tests/sim/node/node_mutants.h"
#include "tests/sim/node/node_world.h"

int main(int argc, char** argv) {
  return firn::RunSim<firn::NodeWorld>({.name = "node_sim"}, firn::kNodeMutants, argc, argv);
}
