/* Records every tick that was ever issued, and asserts the invariants. No host reads it.
 *
 * Invariants 1-7 of registry/claim/WHY-IT-HOLDS.md; each assertion has its number. -DONLY_UNIQUE
 * disables all but invariant 1: the mutants are judged only by a duplicate.
 */

#ifdef ONLY_UNIQUE
#define HOLDS(x) skip
#else
#define HOLDS(x) assert(x)
#endif

/* Two running copies of one holder are detected, not prevented: ticks below the bound of the words
 * that they share may be issued twice. */
#ifdef WITH_TWINS
byte twins_upto;
bit twinned;
#define TWINS_MAY(t) || (t) < twins_upto
#define TWINNED twinned
#else
#define TWINS_MAY(t)
#define TWINNED 0
#endif

#define UNIQUE(s, t) (((issued[s] >> (t)) & 1) == 0)

/* Not an invariant: -DPROBE=number tests whether a state is ever reached; it must be. */
#ifndef PROBE
#define PROBE 0
#endif
#define REACHES(number) assert(PROBE != number)

short issued[SLOTS]; /* bit t: tick t of this slot was issued */
byte j;              /* scratch, zero between events */

/* Every claim builds a new sequencer, and one sequencer never goes back: a tick that is issued a
 * second time was issued under two claims, or by two processes under one. */
inline RecordIssued(h) {
  assert(UNIQUE(host[h].slot, n) TWINS_MAY(n)); /* 1 */
  HOLDS(n < host[h].bound);        /* 2 */
  HOLDS(!FILE_NAMES_CLAIM(h) || n < file[h].L); /* 2 */
  HOLDS(DATA_WAS_LOST || TWINNED || slot[host[h].slot].bound >= host[h].bound); /* 2: R is acknowledged */
  HOLDS(n >= host[h].base);        /* 3 */
  issued[host[h].slot] = issued[host[h].slot] | (1 << n);
}

#define ASKS_FOR(h, n) \
  ((host[h].phase == ASKING || host[h].phase == WAITING) && host[h].nonce == (n))

/* 3, 6: called before each set takes effect. */
inline CheckBoundRises(s_, asked_nonce, asked_bound) {
  HOLDS(asked_nonce == 0 || asked_bound >= slot[s_].bound);
  HOLDS(TWINNED || asked_nonce != 0 || (issued[s_] >> asked_bound) == 0);
  j = 0;
  do
  :: j < HOSTS ->
     HOLDS(TWINNED || !ASKS_FOR(j, asked_nonce) || host[j].inherits ||
           (host[j].base >= slot[s_].bound && host[j].base >= meta.floor));
     j++
  :: else -> break
  od;
  j = 0;
}

/* 5: at the start of each claim. */
inline CheckNonceIsAlone(h) {
#ifndef WITH_TWINS
  j = 0;
  do
  :: j < HOSTS -> HOLDS(j == h || host[j].nonce != host[h].nonce); j++
  :: else -> break
  od;
  j = 0;
#else
  skip
#endif
}
