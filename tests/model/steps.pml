/* A host's steps according to the rules: claim, inherit, issue, renew, release. */

inline AtLeast(variable, value) {
  if
  :: variable < value -> variable = value
  :: else
  fi
}

#ifdef WITH_TWINS
#define PENDING(h) host[h].pending
#if defined(MUTANT_NO_WORDS)
#define WORD_IS_MINE(place, h) (true)
#define FILE_KNOWS_WORD(h) (true)
#elif defined(MUTANT_INHERITS_FROM_A_TWIN)
#define FILE_KNOWS_WORD(h) (true)
#else
#define FILE_KNOWS_WORD(h) WORD_IS_MINE(file, h)
#endif
#ifndef WORD_IS_MINE
#define WORD_IS_MINE(place, h)                           \
  (slot[place[h].slot].word == place[h].word ||          \
   (place[h].pending != 0 && slot[place[h].slot].word == place[h].pending))
#endif
#else
#define PENDING(h) 0
#define WORD_IS_MINE(place, h) (true)
#define FILE_KNOWS_WORD(h) (true)
#endif

/* One for each version that is written from; in the grant file before it is sent. */
inline DrawsWord(h) {
#ifdef WITH_TWINS
  if
  :: host[h].pending == 0 ->
     DrawNonce();
     host[h].pending = n;
     n = 0;
     if
     :: FILE_NAMES_CLAIM(h) -> file[h].pending = host[h].pending
     :: else
     fi
  :: else
  fi
#else
  skip
#endif
}

/* The record shows what this host wrote last. */
inline TakesWordFromSlot(h) {
#ifdef WITH_TWINS
  if
  :: slot[host[h].slot].word != host[h].word ->
     host[h].word = slot[host[h].slot].word;
     host[h].pending = 0
  :: else
  fi
#else
  skip
#endif
}

inline BeginAttempt(h, s_) {
  host[h].phase = ASKING;
  host[h].slot = s_;
  host[h].base = ask_from;
  host[h].bound = ask_upto;
  host[h].ver = slot[s_].ver;
  host[h].czxid = slot[s_].czxid;
  host[h].meta_ver = meta.ver;
  host[h].era = meta.era;
#ifdef MUTANT_NONCE_PER_PROCESS
  if
  :: host[h].own_nonce == 0 -> DrawNonce(); host[h].own_nonce = n
  :: else
  fi;
  host[h].nonce = host[h].own_nonce;
#else
  DrawNonce();
  host[h].nonce = n;
#endif
  n = 0;
  DrawsWord(h);
  ask_from = 0;
  ask_upto = 0;
}

/* Claim 1-4. A wall clock further ahead makes the base higher: SKIPPED ticks. */
inline ReadsSlotSkipping(h, s_, skipped) {
  d_step {
    host[h].phase == IDLE && !meta.missing && !meta.frozen && MORE_VERSIONS(s_) &&
        slot[s_].bound + skipped + WINDOW <= TICKS && meta.floor + skipped + WINDOW <= TICKS ->
    if
    :: slot[s_].nonce == 0 && issued[s_] != 0 && !DATA_WAS_LOST -> REACHES(5)
    :: else
    fi;
    ask_from = slot[s_].bound;
    AtLeast(ask_from, meta.floor);
    ask_from = ask_from + skipped;
    ask_upto = ask_from + WINDOW;
    BeginAttempt(h, s_);
    printf("host %d: reads slot %d at version %d, meta %d; will ask for [%d, %d) as nonce %d\n", h,
           s_, slot[s_].ver, meta.ver, host[h].base, host[h].bound, host[h].nonce);
    Settle();
  }
}

inline ReadsSlot(h, s_) { ReadsSlotSkipping(h, s_, 0) }
inline ReadsSlotLater(h, s_) { ReadsSlotSkipping(h, s_, 1) }

/* The predecessor is dead, and every tick it can have issued lies below L. */
inline InheritsFromFile(h) {
  d_step {
    host[h].phase == IDLE && FILE_IS_OURS(h) && !meta.missing && !meta.frozen &&
        slot[file[h].slot].nonce == file[h].nonce && FILE_KNOWS_WORD(h) && FILE_META_IS(h, meta.ver) &&
        MORE_VERSIONS(file[h].slot) && file[h].L + WINDOW <= TICKS ->
    ask_from = file[h].L;
    ask_upto = ask_from + WINDOW;
    AtLeast(ask_upto, slot[file[h].slot].bound);
    BeginAttempt(h, file[h].slot);
    host[h].inherits = 1;
    printf("host %d: will inherit slot %d at version %d from nonce %d: [%d, %d) as nonce %d\n", h,
           host[h].slot, host[h].ver, file[h].nonce, host[h].base, host[h].bound, host[h].nonce);
    Settle();
  }
}

inline StartsOffline(h) {
  d_step {
    host[h].phase == IDLE && FILE_IS_OURS(h) ->
    host[h].phase = SERVING;
    host[h].slot = file[h].slot;
    host[h].nonce = file[h].nonce;
    host[h].base = file[h].L;
    host[h].bound = file[h].bound;
    host[h].ver = file[h].ver;
    host[h].czxid = file[h].czxid;
    host[h].meta_ver = FILE_META(h);
#ifdef WITH_TWINS
    host[h].word = file[h].word;
    host[h].pending = file[h].pending;
#endif
    printf("host %d: starts offline in slot %d inside [%d, %d) as nonce %d\n", h, host[h].slot,
           host[h].base, host[h].bound, host[h].nonce);
    CheckNonceIsAlone(h);
    Settle();
  }
}

inline BeginClaim(h) {
  host[h].phase = SERVING;
  host[h].inherits = 0;
  host[h].has_read = 1;
  TakesWordFromSlot(h);
  WriteGrant(h);
  CheckNonceIsAlone(h);
  printf("host %d: holds [%d, %d) of slot %d as nonce %d\n", h, host[h].base, host[h].bound,
         host[h].slot, host[h].nonce);
}

inline SetIsAnswered(h) {
  d_step {
    host[h].phase == ASKING && REACHABLE && MORE_VERSIONS(host[h].slot) ->
    if
    :: WOULD_TAKE(host[h].slot, host[h].ver, host[h].meta_ver, host[h].era) ->
       TakeSet(host[h].slot, host[h].nonce, host[h].bound, PENDING(h));
       host[h].ver = slot[host[h].slot].ver;
       if
       :: host[h].inherits -> REACHES(1)
       :: else
       fi;
       BeginClaim(h)
    :: else ->
       printf("host %d: is refused\n", h);
#ifndef MUTANT_KEEPS_ITS_ATTEMPT
#ifdef MUTANT_SETS_AGAIN
       host[h].ver = slot[host[h].slot].ver;
       host[h].meta_ver = meta.ver;
       host[h].era = meta.era
#else
       ForgetClaim(h)
#endif
#else
       skip
#endif
    fi;
    Settle();
  }
}

inline SetIsNotAnswered(h) {
  d_step {
    host[h].phase == ASKING && !meta.missing ->
    printf("host %d: no answer\n", h);
    SendLate(host[h].slot, host[h].nonce, host[h].bound, host[h].ver, host[h].meta_ver,
             host[h].era, PENDING(h));
#ifdef MUTANT_TIMEOUT_IS_OK
    host[h].ver = host[h].ver + 1;
    BeginClaim(h)
#else
    host[h].phase = WAITING;
#endif
    Settle();
  }
}

/* Claim 5. */
inline ReadsBackItsAttempt(h) {
  d_step {
    host[h].phase == WAITING && !meta.missing ->
    if
    :: slot[host[h].slot].nonce == host[h].nonce && slot[host[h].slot].bound >= host[h].bound &&
       WORD_IS_MINE(host, h) && slot[host[h].slot].czxid == host[h].czxid &&
       meta.ver == host[h].meta_ver ->
       printf("host %d: finds its own write\n", h);
       REACHES(2);
       host[h].bound = slot[host[h].slot].bound;
       host[h].ver = slot[host[h].slot].ver;
       BeginClaim(h)
    :: else ->
       printf("host %d: does not find nonce %d, drops it for ever\n", h, host[h].nonce);
       ForgetClaim(h)
    fi;
    Settle();
  }
}

/* Skipping a tick would leave the same state with one bit less for the oracle: not modelled. */
inline Issues(h) {
  d_step {
    host[h].phase == SERVING && NEXT_TICK(h) < host[h].bound ->
    n = NEXT_TICK(h);
    printf("host %d: ISSUES tick %d of slot %d as nonce %d\n", h, n, host[h].slot, host[h].nonce);
    if
    :: !host[h].has_read -> REACHES(3)
    :: else
    fi;
    if
    :: meta.floor > 0 && n >= meta.floor -> REACHES(4)
    :: else
    fi;
    PushL(h, n);
    RecordIssued(h);
    host[h].last = n;
    host[h].issued = 1;
    n = 0;
    Settle();
  }
}

#ifdef MUTANT_BLIND_RENEWAL
#define MAY_WRITE(h) (true)
#else
#define MAY_WRITE(h) (host[h].has_read)
#endif

#ifdef MUTANT_SETS_AGAIN
#define RENEWS_OVER_ANY(h) (true)
#else
#define RENEWS_OVER_ANY(h) (false)
#endif

#define MAY_RENEW(h)                                                      \
  (host[h].phase == SERVING && MAY_WRITE(h) && MORE_VERSIONS(host[h].slot) && \
   host[h].bound + WINDOW <= TICKS)

inline RenewalIsAnswered(h) {
  d_step {
    MAY_RENEW(h) && REACHABLE &&
        (WOULD_TAKE(host[h].slot, host[h].ver, host[h].meta_ver, host[h].era) ||
         RENEWS_OVER_ANY(h)) ->
    if
    :: WOULD_TAKE(host[h].slot, host[h].ver, host[h].meta_ver, host[h].era) ->
       HOLDS(meta.ver == host[h].meta_ver); /* 7 */
       host[h].bound = host[h].bound + WINDOW;
       DrawsWord(h);
       TakeSet(host[h].slot, host[h].nonce, host[h].bound, PENDING(h));
       TakesWordFromSlot(h);
       host[h].ver = slot[host[h].slot].ver;
       printf("host %d: renews slot %d to %d, version %d\n", h, host[h].slot, host[h].bound,
              host[h].ver);
       RewriteGrant(h)
    :: else ->
       printf("host %d: renewal refused, takes version %d\n", h, slot[host[h].slot].ver);
       host[h].ver = slot[host[h].slot].ver
    fi;
    Settle();
  }
}

/* Nothing changes for the host: it may retry from the same version, or read back. */
inline RenewalIsNotAnswered(h) {
  d_step {
    MAY_RENEW(h) && !meta.missing ->
    printf("host %d: no answer to its renewal to %d\n", h, host[h].bound + WINDOW);
    DrawsWord(h);
    SendLate(host[h].slot, host[h].nonce, host[h].bound + WINDOW, host[h].ver, host[h].meta_ver,
             host[h].era, PENDING(h));
#ifdef MUTANT_TIMEOUT_IS_OK
    host[h].bound = host[h].bound + WINDOW;
    host[h].ver = host[h].ver + 1;
    RewriteGrant(h);
#endif
    Settle();
  }
}

#ifdef MUTANT_NUMBERS_ARE_ENOUGH
#define NONCE_IS_MINE(h) (slot[host[h].slot].ver == host[h].ver)
#else
#define NONCE_IS_MINE(h) (slot[host[h].slot].nonce == host[h].nonce)
#endif

#define RECORD_IS_MINE(h)                                                  \
  (NONCE_IS_MINE(h) && WORD_IS_MINE(host, h) && slot[host[h].slot].czxid == host[h].czxid &&        \
   slot[host[h].slot].ver >= host[h].ver && meta.ver == host[h].meta_ver)

/* A foreign nonce ends the claim: the state is the same as after Crashes. */
inline ReadsBackItsClaim(h) {
  d_step {
    host[h].phase == SERVING && !meta.missing && RECORD_IS_MINE(h) &&
        (slot[host[h].slot].ver > host[h].ver || !host[h].has_read) ->
    if
    :: slot[host[h].slot].bound > host[h].bound -> REACHES(6)
    :: else
    fi;
    host[h].ver = slot[host[h].slot].ver;
    host[h].bound = slot[host[h].slot].bound;
    host[h].era = meta.era;
    host[h].has_read = 1;
    TakesWordFromSlot(h);
    printf("host %d: reads back its claim: version %d, bound %d\n", h, host[h].ver, host[h].bound);
    RewriteGrant(h);
    Settle();
  }
}

inline Closes(h) {
  d_step {
    host[h].phase == SERVING && host[h].has_read ->
    host[h].phase = CLOSED;
#ifndef MUTANT_RELEASES_FIRST
    VoidGrant(h);
#endif
    printf("host %d: closes its sequencer\n", h);
    Settle();
  }
}

/* The first tick after max(base, last); every last is at or above its base. */
#ifdef MUTANT_RELEASES_TO_LAST
#define RELEASE_BOUND(h) (host[h].issued -> host[h].last : host[h].base)
#else
#define RELEASE_BOUND(h) (host[h].issued -> host[h].last + 1 : host[h].base + 1)
#endif

inline Leaves(h) {
#ifdef MUTANT_RELEASES_FIRST
  host[h].phase = RELEASED
#else
  HOLDS(file[h].nonce == 0); /* 4 */
  ProcessEnds(h)
#endif
}

inline ReleaseIsAnswered(h) {
  d_step {
    host[h].phase == CLOSED && REACHABLE && MORE_VERSIONS(host[h].slot) &&
        WOULD_TAKE(host[h].slot, host[h].ver, host[h].meta_ver, host[h].era) ->
    n = RELEASE_BOUND(h);
    printf("host %d: releases slot %d down to %d\n", h, host[h].slot, n);
    TakeSet(host[h].slot, 0, n, 0);
    n = 0;
    Leaves(h);
    Settle();
  }
}

inline ReleaseIsNotAnswered(h) {
  d_step {
    host[h].phase == CLOSED && !meta.missing ->
    n = RELEASE_BOUND(h);
    printf("host %d: no answer to its release down to %d\n", h, n);
    SendLate(host[h].slot, 0, n, host[h].ver, host[h].meta_ver, host[h].era, 0);
    n = 0;
    Leaves(h);
    Settle();
  }
}

#ifdef MUTANT_RELEASES_FIRST
inline VoidsItsFileLate(h) {
  d_step {
    host[h].phase == RELEASED ->
    printf("host %d: voids its file\n", h);
    VoidGrant(h);
    ProcessEnds(h);
    Settle();
  }
}
#endif

#ifdef MUTANT_NONCE_PER_PROCESS
inline GivesUp(h) {
  d_step {
    host[h].phase == SERVING ->
    printf("host %d: loses its claim, the process lives on\n", h);
    ForgetClaim(h);
    Settle();
  }
}
#endif
