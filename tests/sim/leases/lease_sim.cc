// Simulates leases of machine ids under faults, one seed after another, until the time limit.
// sim_program.h describes the arguments.

#include "tests/sim/leases/lease_mutants.h"
#include "tests/sim/leases/lease_world.h"

int main(int argc, char** argv) {
  // In one of some tens of worlds, an operator cancels a reservation.
  const firn::SimProgram program{.name = "lease_sim",
                                 .must_happen = {"ids",
                                                 "own ids",
                                                 "grants",
                                                 "renewals",
                                                 "given back",
                                                 "expired leases",
                                                 "rounds after the end",
                                                 "lost leases",
                                                 "revoked",
                                                 "unknown leases",
                                                 "outdated requests",
                                                 "redirected",
                                                 "repeated requests",
                                                 "lost answers",
                                                 "late answers",
                                                 "refused clocks",
                                                 "clocks hours off",
                                                 "programs killed",
                                                 "programs paused",
                                                 "programs copied",
                                                 "servers killed",
                                                 "servers stopped",
                                                 "servers paused",
                                                 "servers copied",
                                                 "state folders copied",
                                                 "twins found",
                                                 "outages",
                                                 "losses",
                                                 "claims after losses",
                                                 "put back",
                                                 "losses of stops",
                                                 "freezes",
                                                 "restores",
                                                 "extensions after a frozen restart",
                                                 "reserved",
                                                 "no longer reserved",
                                                 "retired",
                                                 "machine ids passed on"},
                                 .seeds_for_all = 200};
  return firn::RunSim<firn::LeaseWorld>(program, firn::kLeaseMutants, argc, argv);
}
