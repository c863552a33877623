/* A server's half: claims, promises, renewals and releases. Numbers of rules are those of WHY-LEASES-HOLD.md. */

inline ForgetLease(s) {
  lease[s].nonce = 0;
  lease[s].token = 0;
  lease[s].from = 0;
  lease[s].bound = 0;
  lease[s].promised = 0;
  lease[s].turn = 0;
  lease[s].word = 0;
  lease[s].era = 0;
  lease[s].gone = 0
}

#ifdef MUTANT_LEASE_WITHOUT_WORDS
#define WORD_IS_MINE(s) (true)
#else
#define WORD_IS_MINE(s) (slot.word == lease[s].word)
#endif
#define RECORD_IS_MINE(s) (slot.nonce == lease[s].nonce && WORD_IS_MINE(s) && lease[s].era == era)

inline WritesWord(s) {
#ifdef WITH_TWIN
  Draw();
  slot.word = n;
  lease[s].word = n;
  n = 0
#else
  skip
#endif
}

#define NEEDS_A_CLAIM(s, l)                                                                     \
  (lessee[l].token != 0 && lessee[l].nonce == 0 && lease[s].nonce == 0 && REACHABLE && UP(s) && \
   slot.bound + WINDOW <= TICKS && floor + WINDOW <= TICKS)

/* 1: a token that this server does not know gets a claim of its own. It is answered later. */
inline Claims(s, l) {
  d_step {
    NEEDS_A_CLAIM(s, l) ->
    Draw();
    lease[s].nonce = n;
    lease[s].token = lessee[l].token;
    lease[s].from = slot.bound;
    AtLeast(lease[s].from, floor);
    lease[s].bound = lease[s].from + WINDOW;
    lease[s].era = era;
    NoteEnd();
    NoteBegin(lease[s].from);
    slot.nonce = n;
    slot.bound = lease[s].bound;
    n = 0;
    WritesWord(s);
    printf("server %d: claims [%d, %d) as nonce %d\n", s, lease[s].from, lease[s].bound, lease[s].nonce)
  }
}

/* 1: the claim is written, but its answer is lost. The server never uses this nonce again. */
inline ClaimIsNotAnswered(s, l) {
  d_step {
    NEEDS_A_CLAIM(s, l) ->
    Draw();
#ifdef MUTANT_LEASE_BEFORE_THE_WRITE
    lease[s].nonce = n;
    lease[s].token = lessee[l].token;
    lease[s].from = slot.bound;
    AtLeast(lease[s].from, floor);
    lease[s].bound = lease[s].from + WINDOW;
    lease[s].era = era;
#else
    NoteEnd();
    AtLeast(slot.bound, floor);
    NoteBegin(slot.bound);
    slot.nonce = n;
    slot.bound = slot.bound + WINDOW;
#endif
    n = 0;
    printf("server %d: no answer to its claim\n", s)
  }
}

/* Both copies may repeat the request that was under way when they parted: one answer for both. */
#ifdef WITH_COPY
#define BOTH_ASK (copied && lessee[0].token == lessee[1].token && lessee[0].nonce == lessee[1].nonce && \
                  lessee[0].fresh == lessee[1].fresh)
#else
#define BOTH_ASK (false)
#endif

/* 2, 7: promise and state folder are raised before the answer leaves. */
inline Promise(s, l, upto) {
  if
  :: BOTH_ASK -> AtLeast(copies_upto, upto)
  :: else
  fi;
#ifndef MUTANT_LEASE_RAISES_LATE
  AtLeast(lease[s].promised, upto);
#endif
#ifndef MUTANT_LEASE_NOT_IN_THE_FOLDER
  NoteKept(s);
  AtLeast(kept[s], upto);
#endif
  answer[l].nonce = lease[s].nonce;
  answer[l].from = lease[s].from;
  answer[l].until = upto;
  answer[l].turn = lease[s].turn;
  answer[l].gone = 0;
  answer[l].on_its_way = 1;
  printf("server %d: promises lessee %d [%d, %d)\n", s, l, answer[l].from, upto)
}

inline Refuse(s, l) {
  answer[l].nonce = lease[s].nonce;
  answer[l].from = 0;
  answer[l].until = 0;
  answer[l].turn = 0;
  answer[l].gone = 1;
  answer[l].on_its_way = 1;
  printf("server %d: 410 for lessee %d\n", s, l)
}

#ifdef MUTANT_LEASE_SHARES_A_CLAIM
#define TOKEN_IS(s, l) (true)
#else
#define TOKEN_IS(s, l) (lease[s].token == lessee[l].token)
#endif
#ifdef MUTANT_LEASE_ANSWERS_A_LATER_POST
#define EXTENDED(s) (false)
#else
#define EXTENDED(s) (lease[s].turn != 0)
#endif
#ifdef MUTANT_LEASE_BEYOND_R
#define MOST(s) (lease[s].bound + 1)
#else
#define MOST(s) (lease[s].bound)
#endif
#ifdef MUTANT_LEASE_LENGTHENS_A_POST
#define END_IS(s, upto) ((upto) >= lease[s].promised)
#else
#define END_IS(s, upto) (lease[s].promised == 0 || (upto) == lease[s].promised)
#endif

/* 5: a repeated POST gets the same lease with the same end, until a PUT was accepted. */
inline AnswersPost(s, l, upto) {
  d_step {
    lease[s].nonce != 0 && !lease[s].gone && lessee[l].token != 0 && lessee[l].nonce == 0 &&
        TOKEN_IS(s, l) && !EXTENDED(s) && !answer[l].on_its_way && upto > lease[s].from &&
        END_IS(s, upto) && upto <= MOST(s) && upto <= TICKS ->
    Promise(s, l, upto)
  }
}

/* 5: whether the sender has the answer that was sent last. */
#ifdef MUTANT_LEASE_TURN_ALONE
#define FOLLOWS(s, acknowledged, until) (acknowledged == lease[s].turn)
#else
#define FOLLOWS(s, acknowledged, until) (acknowledged == lease[s].turn && until == lease[s].promised)
#endif

inline Accepts(s, new_turn) {
#ifdef WITH_STALE
  if
  :: duplicate.nonce == lease[s].nonce && duplicate.turn == new_turn -> duplicate.known = 1
  :: else
  fi;
#endif
  lease[s].turn = new_turn
}

inline FindsACopy(s) {
  HOLDS(copied);
  lease[s].gone = 1;
  REACHES(2);
  printf("server %d: lease %d has a copy\n", s, lease[s].nonce)
}

/* 5: a PUT repeats the last one, or follows it, or comes from a copy of the process. */
inline AnswersPut(s, l, upto) {
  d_step {
    lease[s].nonce != 0 && lease[s].nonce == lessee[l].nonce && lessee[l].fresh != 0 &&
        !answer[l].on_its_way && upto >= lease[s].promised && upto <= MOST(s) && upto <= TICKS ->
    if
    :: lease[s].gone -> Refuse(s, l)
    :: !lease[s].gone && lessee[l].fresh == lease[s].turn -> Promise(s, l, lease[s].promised)
#ifdef MUTANT_LEASE_WITHOUT_TURNS
    :: else -> Accepts(s, lessee[l].fresh); Promise(s, l, upto)
#else
    :: !lease[s].gone && lessee[l].fresh != lease[s].turn && FOLLOWS(s, lessee[l].turn, lessee[l].until) ->
       Accepts(s, lessee[l].fresh);
       if
       :: upto > lease[s].from + WINDOW -> REACHES(1)
       :: else
       fi;
       Promise(s, l, upto)
    :: else -> FindsACopy(s); Refuse(s, l)
#endif
    fi
  }
}

inline Renews(s) {
  d_step {
    lease[s].nonce != 0 && !lease[s].gone && REACHABLE && lease[s].bound + WINDOW <= TICKS &&
        RECORD_IS_MINE(s) ->
    slot.bound = slot.bound + WINDOW;
    lease[s].bound = slot.bound;
    WritesWord(s);
    printf("server %d: renews to %d\n", s, lease[s].bound)
  }
}

#ifndef WITH_TWIN
inline RenewalIsNotAnswered(s) {
  d_step {
    lease[s].nonce != 0 && !lease[s].gone && REACHABLE && lease[s].bound + WINDOW <= TICKS &&
        RECORD_IS_MINE(s) && slot.bound == lease[s].bound ->
    slot.bound = slot.bound + WINDOW;
    printf("server %d: no answer to its renewal to %d\n", s, slot.bound)
  }
}

inline ReadsBackItsRenewal(s) {
  d_step {
    lease[s].nonce != 0 && REACHABLE && RECORD_IS_MINE(s) && slot.bound > lease[s].bound ->
    lease[s].bound = slot.bound;
    REACHES(5);
    printf("server %d: finds its own renewal to %d\n", s, slot.bound)
  }
}
#endif

/* 1, 7: a slot that is foreign, twinned or of other data. A server may also never look. */
inline FindsItForeign(s) {
  d_step {
    lease[s].nonce != 0 && !lease[s].gone && REACHABLE && !RECORD_IS_MINE(s) ->
#ifdef MUTANT_LEASE_EXTENDS_A_FOREIGN_SLOT
    if
    :: lease[s].bound < TICKS -> lease[s].bound = lease[s].bound + 1
    :: else
    fi;
#else
#ifdef MUTANT_LEASE_CLAIMS_AGAIN
    if
    :: slot.bound + WINDOW <= TICKS && floor + WINDOW <= TICKS ->
       AtLeast(slot.bound, floor);
       slot.bound = slot.bound + WINDOW;
       slot.nonce = lease[s].nonce;
       lease[s].bound = slot.bound;
       lease[s].era = era
    :: else -> lease[s].gone = 1
    fi;
#else
    lease[s].gone = 1;
#endif
#endif
    printf("server %d: the slot is not its own\n", s)
  }
}

/* Releases the slot at `upto` if the record is still this lease's. The set may be lost: then it never
 * happens. */
inline Release(s, upto) {
  if
  :: REACHABLE && RECORD_IS_MINE(s) && upto < slot.bound ->
     NoteEnd();
     slot.nonce = 0;
     slot.bound = upto;
     slot.word = 0;
     printf("server %d: releases the slot at %d\n", s, upto)
  :: else
  fi
}

/* 4, 6: the lease leaves the table first. Its slot is free at the promise, not below. */
inline Expires(s) {
  d_step {
    lease[s].nonce != 0 ->
    printf("server %d: lease %d expires\n", s, lease[s].nonce);
    t = lease[s].promised;
    AtLeast(t, lease[s].from);
#ifdef MUTANT_LEASE_RELEASED_AT_ITS_START
    t = lease[s].from;
#endif
    Release(s, t);
    t = 0;
#ifndef MUTANT_LEASE_STAYS_IN_THE_TABLE
    ForgetLease(s);
#endif
  }
}

#ifdef MUTANT_LEASE_ENDS_FOR_A_COPY
#define MAY_END(s, l) (true)
#else
#define MAY_END(s, l) \
  (FOLLOWS(s, lessee[l].turn, lessee[l].until) || (lessee[l].fresh != 0 && lessee[l].fresh == lease[s].turn))
#endif

/* 4: the lessee has closed its generator, so the bound may fall to its use.
 * 5: unless the DELETE comes from a copy. (A server may also end the lease at the promise, as in Expires.) */
inline AnswersDelete(s, l) {
  d_step {
    lease[s].nonce != 0 && lease[s].nonce == lessee[l].nonce && lessee[l].leaves && !lease[s].gone ->
    if
    :: MAY_END(s, l) ->
       t = lessee[l].next_tick;
       AtLeast(t, lease[s].from);
       printf("server %d: lessee %d used ticks below %d\n", s, l, t);
       REACHES(3);
       Release(s, t);
       t = 0;
       ForgetLease(s)
    :: else -> FindsACopy(s)
    fi
  }
}
