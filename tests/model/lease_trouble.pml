/* Crashes, copies of memory, late duplicates of requests, and a loss of the registry's data. */

inline ServerCrashes(s) {
  d_step {
    lease[s].nonce != 0 ->
    printf("server %d: crashes\n", s);
#ifdef WITH_STARTS
    up[s] = 0;
#endif
    ForgetLease(s)
  }
}

#ifdef WITH_STARTS
#ifdef MUTANT_LEASE_COMPARES_BOUNDS
#define LOST(s) (slot.bound < kept[s] && floor < kept[s])
#else
/* The slot has a lower bound, or had another claim that began below, and the kept claim did not end. */
#define LOST(s) (floor < kept[s] && !ended[s] && (slot.bound < kept[s] || below[s]))
#endif

/* 7: a start compares its state folder with the registry before it claims, whether it claimed or
 * resumed its own machine id. It freezes a registry that has lost a promise. Until then another server
 * may have claimed the slot, and tells its lessee ticks that were promised; not afterwards. */
inline ServerStarts(s) {
  d_step {
    !up[s] && !lost ->
    up[s] = 1;
    printf("server %d: starts\n", s);
#ifndef MUTANT_LEASE_STARTS_BLINDLY
    if
    :: LOST(s) ->
       REACHES(7);
       lost = 1;
       HOLDS(was_lost);
       printf("server %d: freezes the registry\n", s)
    :: else
    fi;
#endif
    if
    :: !lost && floor == 0 && up[0] && up[1] -> unseen_upto = 0
    :: else
    fi
  }
}
#endif

#ifdef WITH_STALE
/* A proxy keeps a duplicate of a PUT, or drops the one that it kept. */
inline RequestIsDuplicated(l) {
  d_step {
    lessee[l].fresh != 0 && lessee[l].open && duplicate.turn != lessee[l].fresh ->
    duplicate.nonce = lessee[l].nonce;
    duplicate.turn = lessee[l].fresh;
    duplicate.acknowledged = lessee[l].turn;
    duplicate.until = lessee[l].until;
    duplicate.known = (lease[0].nonce == lessee[l].nonce && lease[0].turn == lessee[l].fresh) ||
        (lease[1].nonce == lessee[l].nonce && lease[1].turn == lessee[l].fresh)
  }
}

/* 5: a turn that was accepted earlier says nothing, and is not extended. No answer is delivered. */
inline DuplicateArrives(s) {
  d_step {
    duplicate.nonce != 0 && lease[s].nonce == duplicate.nonce && !lease[s].gone ->
    printf("server %d: receives a late duplicate\n", s);
    if
    :: duplicate.turn == lease[s].turn -> skip
    :: duplicate.turn != lease[s].turn && FOLLOWS(s, duplicate.acknowledged, duplicate.until) ->
       lease[s].turn = duplicate.turn;
       AtLeast(lease[s].promised, lease[s].bound);
       AtLeast(kept[s], lease[s].bound)
#ifndef MUTANT_LEASE_FORGETS_TURNS
    :: duplicate.turn != lease[s].turn && duplicate.known -> REACHES(4)
#endif
    :: else -> FindsACopy(s)
    fi;
    duplicate.nonce = 0;
    duplicate.turn = 0;
    duplicate.acknowledged = 0;
    duplicate.until = 0;
    duplicate.known = 0
  }
}
#endif

/* The process is copied with all its memory, and both copies run. */
inline LesseeIsCopied() {
  d_step {
    !copied && lessee[0].token != 0 && lessee[1].token == 0 ->
    printf("lessee 1: becomes a copy of lessee 0\n");
    copied = 1;
    copies_upto = lessee[0].until;
    AtLeast(copies_upto, answer[0].until);
    lessee[1].token = lessee[0].token;
    lessee[1].nonce = lessee[0].nonce;
    lessee[1].from = lessee[0].from;
    lessee[1].until = lessee[0].until;
    lessee[1].next_tick = lessee[0].next_tick;
    lessee[1].turn = lessee[0].turn;
    lessee[1].fresh = lessee[0].fresh;
    lessee[1].open = lessee[0].open;
    lessee[1].leaves = lessee[0].leaves
  }
}

/* A server is copied with all its memory, after its lessee was: otherwise each lease has one lessee. */
inline ServerIsCopied() {
  d_step {
    copied && lease[0].nonce != 0 && lease[1].nonce == 0 ->
    printf("server 1: becomes a copy of server 0\n");
    AtLeast(copies_upto, lease[0].bound);
    lease[1].nonce = lease[0].nonce;
    lease[1].token = lease[0].token;
    lease[1].from = lease[0].from;
    lease[1].bound = lease[0].bound;
    lease[1].promised = lease[0].promised;
    lease[1].turn = lease[0].turn;
    lease[1].word = lease[0].word;
    lease[1].era = lease[0].era;
    lease[1].gone = lease[0].gone
  }
}

/* The registry. Between a loss and the restore nothing is set, as in claim.pml. */

inline BackupIsTaken() {
  d_step {
    !has_backup && !was_lost ->
    has_backup = 1;
    old_slot.nonce = slot.nonce;
    old_slot.bound = slot.bound;
    old_slot.word = slot.word;
#ifdef WITH_STARTS
    old_begin = begin;
    i = 0;
    do
    :: i < SERVERS -> old_kept_nonce[i] = kept_nonce[i]; old_ended[i] = ended[i]; i++
    :: else -> break
    od;
    i = 0
#endif
  }
}

inline RollsBack() {
  d_step {
    has_backup && !was_lost ->
    printf("registry: ROLLED BACK to bound %d\n", old_slot.bound);
    slot.nonce = old_slot.nonce;
    slot.bound = old_slot.bound;
    slot.word = old_slot.word;
    old_slot.nonce = 0;
    old_slot.bound = 0;
    old_slot.word = 0;
    has_backup = 0;
#ifdef WITH_STARTS
    begin = old_begin;
    old_begin = 0;
    i = 0;
    do
    :: i < SERVERS ->
       ended[i] = old_ended[i] && old_kept_nonce[i] == kept_nonce[i];
       old_ended[i] = 0;
       old_kept_nonce[i] = 0;
       AtLeast(unseen_upto, kept[i]);
       i++
    :: else -> break
    od;
    i = 0;
    lost = up[0] || up[1]; /* a server that runs notices it, by its own claim */
#else
    lost = 1;
#endif
    was_lost = 1
  }
}

/* 7: the floor covers what running servers and state folders know. */
inline OperatorRestores() {
  d_step {
    lost ->
    AtLeast(floor, slot.bound);
    i = 0;
    do
    :: i < SERVERS ->
       AtLeast(floor, lease[i].bound);
#ifndef MUTANT_LEASE_RESTORE_FORGETS_PROMISES
       AtLeast(floor, kept[i]);
#endif
       i++
    :: else -> break
    od;
    i = 0;
    era = 1;
    lost = 0;
    printf("registry: restored, floor %d\n", floor)
  }
}
