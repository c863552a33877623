/* The registry: one record a slot, the meta node, and the one write that may still be on its way.
 *
 * 1. A slot changes only by a versioned set that also checks the meta node's version and the era of
 *    the data, in one step. Numbers come again in other data, eras never do.
 * 2. A set on its way survives the host that sent it, not the data it was sent to: a lost data set
 *    ends every session. WITH_STAY: neither ends, and nobody hears of the loss before he writes.
 * 3. Between a loss and the freeze (or the restore) nothing is set. That is the page's own limit of
 *    what is promised, and this is the only place that assumes it.
 */

typedef Record {
  byte nonce; /* 0: nobody's */
  byte bound; /* stamps below it are given away */
  byte ver;   /* of the node: +1 at each set */
  byte czxid; /* of the node: another one when it is made anew */
#ifdef WITH_TWINS
  byte word; /* of its last writer's: tells copies of one holder apart */
#endif
};

typedef Meta {
  byte ver;
  byte floor;
  byte era;  /* of the data: drawn anew by each restore */
  bit frozen;
  bit missing;
};

/* A set that was sent; `nonce` 0 gives the slot back. */
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

/* Without a loss of data, versions are only ever compared with the slot's present one. So it stays
 * 1 for ever and what others remember becomes 0: the same runs, and no limit on the number of sets.
 * With a loss the numbers are real, because a number may come again: that is what is asked. */
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
  :: late.slot == s_ -> ForgetLate() /* its version will not come back while its session lives */
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

/* A second write without an answer means that the first was lost: one is enough to hurt. */
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

/* A write without an answer may arrive at any time, or never; the version decides, as ever. */
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

/* Where sessions end with the data nobody can tell one era from another: all are 0 there. */
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
