/* The claim of a machine id: a slot's record is a range allocator over ticks.
 *
 * One process plays the whole world: each option of its loop is one indivisible event (a read, a
 * versioned set that reaches the registry, an answer that is lost, a crash, a copied file ...), and
 * Spin tries every order of them. Hosts have no clocks of their own here: a claim may start at any
 * tick that the rules allow, which covers every clock, right or wrong.
 *
 * A configuration is chosen by -D: HOSTS, SLOTS, WINDOW (ticks that a claim reserves), TICKS (the
 * horizon), VERSIONS (the highest record version, when data may be lost), LOSSES, and the kinds of
 * faults: WITH_LATE, WITH_RELEASE, WITH_COPY, WITH_REBOOT, WITH_DISK, WITH_GAPS, WITH_ROLLBACK,
 * WITH_WIPE, WITH_STAY, WITH_DELETE, WITH_DEVICE, WITH_TWINS. With -DLIVENESS all faults end at some
 * moment, and service has to return. A mutant is chosen by -DMUTANT_...; -DONLY_UNIQUE leaves invariant 1 as
 * the only assertion. runs.txt lists the configurations and mutants, README.md the omissions.
 */

#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef WINDOW
#define WINDOW 1
#endif
#ifndef TICKS
#define TICKS 4
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef VERSIONS
#define VERSIONS 6
#endif

#if defined(WITH_ROLLBACK) || defined(WITH_WIPE) || defined(WITH_DELETE)
#define WITH_LOSS
#endif

#if defined(WITH_REBOOT) || defined(WITH_DEVICE) || defined(MUTANT_LOWERS_L)
#define REMEMBERS_FIRST_L
#endif

#ifdef WITH_LATE
#define IF_LATE(x) x
#else
#define IF_LATE(x)
#endif
#ifdef WITH_RELEASE
#define IF_RELEASE(x) x
#else
#define IF_RELEASE(x)
#endif
#ifdef WITH_REBOOT
#define IF_REBOOT(x) x
#else
#define IF_REBOOT(x)
#endif
#ifdef WITH_DEVICE
#define IF_DEVICE(x) x
#else
#define IF_DEVICE(x)
#endif
#ifdef WITH_DISK
#define IF_DISK(x) x
#else
#define IF_DISK(x)
#endif
#ifdef WITH_LOSS
#define IF_LOSS(x) x
#else
#define IF_LOSS(x)
#endif
#ifdef WITH_GAPS
#define IF_GAPS(x) x
#else
#define IF_GAPS(x)
#endif
#ifdef MUTANT_NONCE_PER_PROCESS
#define IF_GIVES_UP(x) x
#else
#define IF_GIVES_UP(x)
#endif
#ifdef MUTANT_RELEASES_FIRST
#define IF_VOIDS_LATE(x) x
#else
#define IF_VOIDS_LATE(x)
#endif

#include "registry.pml"
#include "host.pml"
#include "oracle.pml"
#include "grant.pml"
#include "steps.pml"
#include "trouble.pml"
#include "calm.pml"

#define EVERY_SLOT(EVENT, h) \
  :: EVENT(h, 0)             \
  SECOND_SLOT(EVENT, h)

#if SLOTS > 1
#define SECOND_SLOT(EVENT, h) :: EVENT(h, 1)
#else
#define SECOND_SLOT(EVENT, h)
#endif

/* Everything that one host can do, or that can happen to it. */
#define EVERYTHING(h)          \
  EVERY_SLOT(ReadsSlot, h)     \
  IF_GAPS(EVERY_SLOT(ReadsSlotLater, h)) \
  :: InheritsFromFile(h)       \
  :: StartsOffline(h)          \
  :: SetIsAnswered(h)          \
  :: ReadsBackItsAttempt(h)    \
  :: Issues(h)                 \
  :: RenewalIsAnswered(h)      \
  :: ReadsBackItsClaim(h)      \
  :: Crashes(h)                \
  IF_LATE(:: SetIsNotAnswered(h) :: RenewalIsNotAnswered(h)) \
  IF_RELEASE(:: Closes(h) :: ReleaseIsAnswered(h))           \
  IF_LATE(IF_RELEASE(:: ReleaseIsNotAnswered(h)))            \
  IF_REBOOT(:: Reboots(h))     \
  IF_DISK(:: LosesItsFile(h))  \
  IF_DEVICE(:: DeviceIsLost(h)) \
  IF_LOSS(:: FindsTheLoss(h))  \
  IF_GIVES_UP(:: GivesUp(h))   \
  IF_VOIDS_LATE(:: VoidsItsFileLate(h))

init {
  Founds();
end:
  do
  EVERYTHING(0)
  EVERYTHING(1)
#if HOSTS > 2
  EVERYTHING(2)
#endif
#ifdef WITH_COPY
  :: FileIsCopied(0, 1)
  :: FileIsCopied(1, 0)
  :: CopyIsPutBack(0, 1)
  :: CopyIsPutBack(1, 0)
#endif
#ifdef WITH_TWINS
  :: IsTwinned(0, 1)
  :: IsTwinned(1, 0)
#endif
#ifdef WITH_LATE
  :: LateWriteArrives()
#endif
#ifdef WITH_ROLLBACK
  :: BackupIsTaken()
  :: RollsBack()
#endif
#ifdef WITH_WIPE
  :: IsWiped()
#endif
#ifdef WITH_DELETE
  :: RecordIsDeleted()
#endif
#ifdef WITH_LOSS
  :: OperatorRestores()
#endif
#ifdef LIVENESS
  :: calm = 1; break
#endif
  od;
#ifdef LIVENESS
  AllGoesWell()
#endif
}
