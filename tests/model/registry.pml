/* The registry: one record for each slot, the meta node, and the one pending write.
 *
 * 1. A slot changes only by a versioned set that also checks the meta node's version and the era of
 *    the data, in one step. Numbers recur in other data, eras never do.
 * 2. A pending set survives the host that sent it, but not the data it was sent to: a loss of data
 *    ends every session. WITH_STAY: neither ends, and no host notices the loss before it writes.
 * 3. Between a loss and the freeze (or the restore) nothing is set. README.md lists this as an
 *    assumption, and this is the only place that makes it.
 */

typedef Record {
  byte nonce; /* 0: no holder */
  byte bound; /* ticks below it are used up */
  byte ver;   /* of the node: +1 at each set */
  byte czxid; /* of the node: changes when it is re-created */
#ifdef WITH_TWINS
  byte word; /* of its last writer: distinguishes copies of one holder */
#endif
};

typedef Meta {
  byte ver;
  byte floor;
  byte era;  /* of the data: drawn by each restore */
  bit frozen;
  bit missing;
};

/* A set that was sent; `nonce` 0 releases the slot. */
typedef Write {
  byte slot;
  byte nonce;
  byte bound;
  byte ver;
  byte meta_ver;
  byte era;
#ifdef WITH_TWINS
  byte word;
#endif
  bit on_its_way;
};

Record slot[SLOTS];
Meta meta;
#ifdef WITH_STAY
byte eras; /* so far */
#endif
Write late;

#ifdef WITH_LOSS
Record old_slot[SLOTS]; /* the backup */
Meta old_meta;
bit has_backup;
bit lost;          /* data went back, and is not yet frozen or restored */
byte losses;       /* so far; at most LOSSES */
#define LOST lost
#define DATA_WAS_LOST (losses > 0)
#else
#define LOST 0
#define DATA_WAS_LOST 0
#endif

#ifdef MUTANT_NO_VERSION_CHECK
#define VERSION_IS(s, v) (true)
#else
#define VERSION_IS(s, v) (slot[s].ver == (v))
#endif

#ifdef MUTANT_NO_META_CHECK
#define META_IS(m) (true)
#else
#define META_IS(m) (meta.ver == (m))
#endif

#ifdef MUTANT_NO_ERA_CHECK
#define ERA_IS(e) (true)
#else
#define ERA_IS(e) (meta.era == (e))
#endif

/* Whether the registry takes a set now: rule 1, rule 3. */
#define REACHABLE (!LOST && !meta.missing)
#define WOULD_TAKE(s, v, m, e) (VERSION_IS(s, v) && META_IS(m) && ERA_IS(e))

/* Without a loss of data, versions are only compared with the slot's current one. So that stays 1,
 * and the versions that others remember become 0: the same runs, without a limit on the number of
 * sets. With a loss the numbers are real, because a number may recur: that is under test. */
#ifdef WITH_LOSS
#define MORE_VERSIONS(s) (slot[s].ver < VERSIONS)
#else
#define MORE_VERSIONS(s) (true)
#endif

inline MoveVersion(s_) {
#ifdef WITH_LOSS
  slot[s_].ver = slot[s_].ver + 1;
#else
  i = 0;
  do
  :: i < HOSTS ->
     if
     :: host[i].slot == s_ -> host[i].ver = 0
     :: else
     fi;
     if
     :: file[i].slot == s_ -> file[i].ver = 0
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0;
#endif
#if !defined(MUTANT_NO_VERSION_CHECK) && !defined(WITH_DELETE)
  if
  :: late.slot == s_ -> ForgetLate() /* its version does not recur while its session lives */
  :: else
  fi;
#endif
}

inline TakeSet(s_, nonce_, bound_, word_) {
  CheckBoundRises(s_, nonce_, bound_);
  slot[s_].nonce = nonce_;
  slot[s_].bound = bound_;
#ifdef WITH_TWINS
  slot[s_].word = word_;
#endif
  MoveVersion(s_);
}

#ifdef WITH_TWINS
#define LATE_WORD late.word
#else
#define LATE_WORD 0
#endif
byte word; /* scratch */

/* A second write without an answer means that the first was lost: one is sufficient. */
inline SendLate(s_, nonce_, bound_, v_, m_, e_, word_) {
  late.slot = s_;
  late.nonce = nonce_;
  late.bound = bound_;
  late.ver = v_;
  late.meta_ver = m_;
  late.era = e_;
#ifdef WITH_TWINS
  late.word = word_;
#endif
  late.on_its_way = 1;
}

inline ForgetLate() {
  late.slot = 0;
  late.nonce = 0;
  late.bound = 0;
  late.ver = 0;
  late.meta_ver = 0;
  late.era = 0;
#ifdef WITH_TWINS
  late.word = 0;
#endif
  late.on_its_way = 0;
}

inline TakeLate() {
  ask_from = late.slot; /* TakeSet forgets the late write before it is done */
  n = late.nonce;
  ask_upto = late.bound;
  word = LATE_WORD;
  TakeSet(ask_from, n, ask_upto, word);
  word = 0;
  ask_from = 0;
  n = 0;
  ask_upto = 0;
}

/* A write without an answer may arrive at any time, or never; the version decides, as always. */
inline LateWriteArrives() {
  d_step {
    late.on_its_way && REACHABLE && WOULD_TAKE(late.slot, late.ver, late.meta_ver, late.era) &&
        MORE_VERSIONS(late.slot) ->
    printf("registry: the late write arrives: slot %d, nonce %d, bound %d\n", late.slot, late.nonce,
           late.bound);
    TakeLate();
    ForgetLate();
    Settle();
  }
}

/* If sessions end with the data, no host can distinguish eras: all are 0. */
inline BeginEra() {
#ifdef WITH_STAY
  eras++;
  meta.era = eras;
#else
  skip
#endif
}

inline Founds() {
  d_step {
    meta.ver = 1;
    BeginEra();
    i = 0;
    do
    :: i < SLOTS -> slot[i].czxid = 1; slot[i].ver = 1; i++
    :: else -> break
    od;
    i = 0;
  }
}
