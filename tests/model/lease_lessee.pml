/* A lessee's half. Numbers of rules are those of WHY-LEASES-HOLD.md. */

inline ForgetAnswer(l) {
  answer[l].nonce = 0;
  answer[l].from = 0;
  answer[l].until = 0;
  answer[l].turn = 0;
  answer[l].gone = 0;
  answer[l].on_its_way = 0
}

inline ForgetLessee(l) {
  lessee[l].token = 0;
  lessee[l].nonce = 0;
  lessee[l].from = 0;
  lessee[l].until = 0;
  lessee[l].next_tick = 0;
  lessee[l].turn = 0;
  lessee[l].fresh = 0;
  lessee[l].open = 0;
  lessee[l].leaves = 0;
  ForgetAnswer(l)
}

inline AsksForALease(l) {
  d_step {
    lessee[l].token == 0 ->
    Draw();
    lessee[l].token = n;
    n = 0
  }
}

/* 5: a fresh turn, which is repeated until it is answered. */
inline AsksForMore(l) {
  d_step {
    lessee[l].open && lessee[l].fresh == 0 ->
    Draw();
    lessee[l].fresh = n;
    n = 0
  }
}

/* 3: the interval grows, and the position never falls. A closed generator stays closed. */
inline AnswerArrives(l) {
  d_step {
    answer[l].on_its_way ->
    if
    :: answer[l].gone && answer[l].nonce == lessee[l].nonce ->
       lessee[l].open = 0
    :: !answer[l].gone && lessee[l].nonce == 0 && lessee[l].token != 0 ->
       lessee[l].nonce = answer[l].nonce;
       lessee[l].from = answer[l].from;
       lessee[l].until = answer[l].until;
       lessee[l].next_tick = answer[l].from;
       lessee[l].open = 1
#ifdef MUTANT_LEASE_REOPENED_BY_AN_ANSWER
    :: !answer[l].gone && lessee[l].nonce == answer[l].nonce ->
       lessee[l].open = 1;
       lessee[l].leaves = 0;
#else
    :: !answer[l].gone && lessee[l].nonce == answer[l].nonce && lessee[l].open ->
#endif
       AtLeast(lessee[l].until, answer[l].until);
#ifdef MUTANT_LEASE_POSITION_FALLS
       lessee[l].next_tick = answer[l].from;
#endif
       if
       :: answer[l].turn != 0 && answer[l].turn == lessee[l].fresh ->
          lessee[l].turn = lessee[l].fresh;
          lessee[l].fresh = 0
       :: else
       fi
    :: else
    fi;
    ForgetAnswer(l)
  }
}

inline AnswerIsLost(l) {
  d_step {
    answer[l].on_its_way ->
    ForgetAnswer(l)
  }
}

#ifdef WITH_STARTS
#define COPIES_MAY(tick) || (tick) < unseen_upto
#elif defined(WITH_COPY)
#define COPIES_MAY(tick) || (tick) < copies_upto
#else
#define COPIES_MAY(tick)
#endif

inline Issues(l) {
  d_step {
    lessee[l].open && lessee[l].next_tick < lessee[l].until ->
    n = lessee[l].next_tick;
    printf("lessee %d: ISSUES tick %d\n", l, n);
    assert(((issued >> n) & 1) == 0 COPIES_MAY(n)); /* unique */
    HOLDS(n >= lessee[l].from);
    if
    :: era > 0 -> REACHES(6)
    :: else
    fi;
    issued = issued | (1 << n);
    lessee[l].next_tick = n + 1;
    n = 0
  }
}

/* 4: closes its generator before it reads its position. */
inline Leaves(l) {
  d_step {
    lessee[l].open && lessee[l].nonce != 0 && !lessee[l].leaves ->
#ifndef MUTANT_LEASE_ENDED_WHILE_OPEN
    lessee[l].open = 0;
#endif
    lessee[l].leaves = 1;
    printf("lessee %d: leaves\n", l)
  }
}

/* -DENDS=number limits how often lessees end, for a smaller search. */
#ifdef ENDS
inline CountEnd() {
  ends++
}
#else
#define ENDS 1
inline CountEnd() {
  skip
}
#endif

/* Crashes, or stops and takes another lease elsewhere. */
inline LesseeEnds(l) {
  d_step {
    lessee[l].token != 0 && ends < ENDS ->
    CountEnd();
    printf("lessee %d: ends\n", l);
    ForgetLessee(l)
  }
}
