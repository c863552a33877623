#pragma once

#include "tests/sim/sim_program.h"

namespace firn {

// Errors about leases, each injected around a server or a program: in the registry, the disk, or
// the requests and answers. The product has no switch for any of them. Each comment begins with the
// number of the rule in registry/claim/WHY-LEASES-HOLD.md.
enum class LeaseMutant {
  kNone,
  kTokensAlike,        // 1: programs draw equal tokens, so one claim backs two leases
  kBeforeTheWrite,     // 1: a claim of unknown outcome is answered as applied
  kAnswersBeyond,      // 2: an answer has a later end than the server has promised
  kEndedWhileOpen,     // 4: a lessee reports an earlier tick than it has used
  kOlderTurnBelieved,  // 4: accepts the use that a copy reports, without checking its turn
  kWithoutTurns,       // 5: accepts a renewal without checking its turn
  kStopReleases,       // 6: a server that ends frees the slots of its leases
  kExtendsExpired,     // 6: a lease that has left the table is extended
  kNotInFolder,        // 7: a bound is reported as stored but is not stored
  kBoundsAlone,        // 7: a bound is stored without its claim
  kTwinsUnnoticed,     // 7: a server mistakes its copy's write to a lease's slot for its own
  kNoVersionCheck,     // 7: a slot's record is set without checking its version
  kForgetsStop,        // 13: the state folder does not say that a stop may have lowered R
  kResumesLate,        // 13: a server resumes leases only if it holds a machine id itself
};

inline constexpr MutantRow<LeaseMutant> kLeaseMutants[] = {
    {LeaseMutant::kTokensAlike, "tokens-alike", "invariant 1:"},
    {LeaseMutant::kBeforeTheWrite, "before-the-write", "invariant 1:"},
    {LeaseMutant::kAnswersBeyond, "answers-beyond", "invariant 1:"},
    {LeaseMutant::kEndedWhileOpen, "ended-while-open", "invariant 1:"},
    {LeaseMutant::kOlderTurnBelieved, "older-turn-believed", "invariant 1:"},
    {LeaseMutant::kWithoutTurns, "without-turns", "invariant 1:"},
    {LeaseMutant::kStopReleases, "stop-releases", "invariant 1:"},
    {LeaseMutant::kExtendsExpired, "extends-expired", "invariant 1:"},
    {LeaseMutant::kNotInFolder, "not-in-folder", "invariant 1:"},
    {LeaseMutant::kBoundsAlone, "bounds-alone", "invariant 7:"},
    {LeaseMutant::kTwinsUnnoticed, "twins-unnoticed", "invariant 1:"},
    {LeaseMutant::kNoVersionCheck, "no-version-check", "invariant 1:"},
    {LeaseMutant::kForgetsStop, "forgets-stop", "invariant 1:"},
    {LeaseMutant::kResumesLate, "resumes-late", "invariant 8:"},
};

}  // namespace firn
