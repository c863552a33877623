#pragma once

#include <array>
#include <string_view>

namespace firn {

// Errors about leases, each injected around a server or a program: in the registry, the disk, or
// the requests and answers. The product has no switch for any of them. Each comment begins with the
// number of the rule in registry/claim/WHY-LEASES-HOLD.md.
enum class LeaseMutant {
  kNone,
  kTokensAlike,        // 1: programs draw equal tokens, so one claim backs two leases
  kBeforeTheWrite,     // 1: a claim whose outcome is unknown is answered as applied
  kAnswersBeyond,      // 2: an answer has a later end than the server has promised
  kEndedWhileOpen,     // 4: a lessee reports an earlier tick than it has used
  kOlderTurnBelieved,  // 4: the use that a copy reports is believed, whatever its turn
  kWithoutTurns,       // 5: a renewal is accepted whatever turn it names
  kStopReleases,       // 6: a server that ends frees the slots of its leases
  kExtendsExpired,     // 6: a lease that has left the table is extended
  kNotInFolder,        // 7: a bound is reported as kept, and is not
  kBoundsAlone,        // 7: a bound is kept without its claim
  kTwinsUnnoticed,     // 7: a server takes its copy's write to a lease's slot for its own
  kNoVersionCheck,     // 7: a slot's record is set whatever version is there
  kResumesLate,        // 12: a lease is resumed only by a server with a machine id of its own
};

struct LeaseMutantName {
  LeaseMutant mutant;
  std::string_view name;
};

inline constexpr std::array<LeaseMutantName, 13> kLeaseMutants = {{
    {LeaseMutant::kTokensAlike, "tokens-alike"},
    {LeaseMutant::kBeforeTheWrite, "before-the-write"},
    {LeaseMutant::kAnswersBeyond, "answers-beyond"},
    {LeaseMutant::kEndedWhileOpen, "ended-while-open"},
    {LeaseMutant::kOlderTurnBelieved, "older-turn-believed"},
    {LeaseMutant::kWithoutTurns, "without-turns"},
    {LeaseMutant::kStopReleases, "stop-releases"},
    {LeaseMutant::kExtendsExpired, "extends-expired"},
    {LeaseMutant::kNotInFolder, "not-in-folder"},
    {LeaseMutant::kBoundsAlone, "bounds-alone"},
    {LeaseMutant::kTwinsUnnoticed, "twins-unnoticed"},
    {LeaseMutant::kNoVersionCheck, "no-version-check"},
    {LeaseMutant::kResumesLate, "resumes-late"},
}};

}  // namespace firn
