// Simulates leases of machine ids under faults, seed after seed, until the time is over;
// sim_program.h describes the arguments.

#include <iterator>
#include <stdexcept>
#include <string_view>

#include "tests/sim/leases/lease_mutants.h"
#include "tests/sim/leases/lease_world.h"
#include "tests/sim/sim_program.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

void RunWorld(uint64_t seed, int mutant, const SimArguments& arguments, SimCounts& counts) {
  const LeaseMutant liar =
      mutant < 0 ? LeaseMutant::kNone : kLeaseMutants[static_cast<size_t>(mutant)].mutant;
  LeaseWorld world(seed, liar, arguments.trace);
  const auto count = [&] {
    counts.assign(world.Counts().begin(), world.Counts().end());
    TellDigest(arguments, seed, world.digest());
  };
  try {
    world.Run();
  } catch (const Violation& violation) {
    count();
    // A mutant must lead to an id that is issued twice, to a loss that goes unnoticed, or to a
    // lease that is not extended.
    const int of_mutant = liar == LeaseMutant::kBoundsAlone   ? 7
                          : liar == LeaseMutant::kResumesLate ? 8
                                                              : 1;
    const bool counts_as_caught = mutant < 0 || violation.invariant() == of_mutant;
    if (counts_as_caught) {
      throw std::runtime_error(violation.what() + (" [" + world.text() + "]"));
    }
  }
  count();
}

// Every kind of event.
constexpr std::string_view kMustHappen[] = {"ids",
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
                                            "freezes",
                                            "restores",
                                            "extensions after a frozen restart",
                                            "reserved",
                                            "no longer reserved",
                                            "retired",
                                            "machine ids passed on"};

}  // namespace
}  // namespace firn

int main(int argc, char** argv) {
  // An operator takes a reservation back in one of some tens of worlds.
  firn::SimProgram program{
      .name = "lease_sim", .mutants = {}, .run = firn::RunWorld, .seeds_for_all = 200};
  for (const firn::LeaseMutantName& mutant : firn::kLeaseMutants) {
    program.mutants.push_back(mutant.name);
  }
  program.must_happen.assign(std::begin(firn::kMustHappen), std::end(firn::kMustHappen));
  return firn::RunSimProgram(program, argc, argv);
}
