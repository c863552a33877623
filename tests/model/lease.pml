/* A lease of a machine id: a server claims a slot for a program, the lessee, which issues ids by
 * itself in an interval that the server promises and extends.
 *
 * The claim is that of claim.pml, reduced to what leases need: a record with a nonce and a bound, and
 * a set that takes effect only over the record that its writer knows. Any server may claim the slot at
 * any moment, from its bound on. Each event is indivisible, and Spin tries every order of them. There
 * is no clock: an expiry, a pause or a late answer may happen at any moment.
 *
 * Each lessee has at most one request under way. A server accepts it at any moment, and may accept it
 * again (a repeated request). The answer arrives at any later moment, or never.
 *
 * A configuration is chosen by -D: TICKS (the horizon), WINDOW (ticks that a claim reserves), and the
 * kinds of events: WITH_DELETE, WITH_EXPIRY, WITH_CRASH (of servers), WITH_END (of lessees), WITH_LOSS
 * (the registry is rolled back once), WITH_STALE (a duplicate of a request arrives late), WITH_COPY (a
 * lessee is copied while it runs), WITH_TWIN (after that, a server is), WITH_STARTS (servers start and
 * compare; the registry may be rolled back while they are stopped, and another server claims then). A
 * mutant is chosen by -DMUTANT_...; -DONLY_UNIQUE leaves the uniqueness of ticks as the only assertion.
 * WHY-LEASES-HOLD.md lists the mutants, README.md the omissions.
 */

#ifndef TICKS
#define TICKS 4
#endif
#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef PROBE
#define PROBE 0
#endif
#define REACHES(number) assert(PROBE != number)
#ifdef ONLY_UNIQUE
#define HOLDS(x) skip
#else
#define HOLDS(x) assert(x)
#endif

#include "lease_state.pml"
#include "lease_server.pml"
#include "lease_lessee.pml"
#include "lease_trouble.pml"

#define SERVES(s, l)                       \
  :: Claims(s, l)                          \
  :: ClaimIsNotAnswered(s, l)              \
  :: AnswersPost(s, l, MOST(s))            \
  :: AnswersPost(s, l, MOST(s) - 1)        \
  :: AnswersPost(s, l, lease[s].promised)  \
  :: AnswersPut(s, l, MOST(s))             \
  :: AnswersPut(s, l, MOST(s) - 1)

#define SERVER(s)        \
  SERVES(s, 0)           \
  SERVES(s, 1)           \
  :: Renews(s)           \
  :: FindsItForeign(s)

#define LESSEE(l)        \
  :: AsksForALease(l)    \
  :: AsksForMore(l)      \
  :: AnswerArrives(l)    \
  :: AnswerIsLost(l)     \
  :: Issues(l)

init {
end:
  do
  :: atomic {
       if
  SERVER(0)
  SERVER(1)
#ifdef WITH_STARTS
  :: ServerStarts(0)
  :: ServerStarts(1)
#endif
  LESSEE(0)
  LESSEE(1)
#ifndef WITH_TWIN
  :: RenewalIsNotAnswered(0)
  :: RenewalIsNotAnswered(1)
  :: ReadsBackItsRenewal(0)
  :: ReadsBackItsRenewal(1)
#endif
#ifdef WITH_EXPIRY
  :: Expires(0)
  :: Expires(1)
#endif
#ifdef WITH_DELETE
  :: Leaves(0)
  :: Leaves(1)
  :: AnswersDelete(0, 0)
  :: AnswersDelete(0, 1)
  :: AnswersDelete(1, 0)
  :: AnswersDelete(1, 1)
#endif
#ifdef WITH_CRASH
  :: ServerCrashes(0)
  :: ServerCrashes(1)
#endif
#ifdef WITH_END
  :: LesseeEnds(0)
  :: LesseeEnds(1)
#endif
#ifdef WITH_STALE
  :: RequestIsDuplicated(0)
  :: RequestIsDuplicated(1)
  :: DuplicateArrives(0)
  :: DuplicateArrives(1)
#endif
#ifdef WITH_COPY
  :: LesseeIsCopied()
#endif
#ifdef WITH_TWIN
  :: ServerIsCopied()
#endif
#ifdef WITH_LOSS
  :: BackupIsTaken()
  :: RollsBack()
  :: OperatorRestores()
#endif
       fi;
       d_step { Settle() }
     }
  od
}
