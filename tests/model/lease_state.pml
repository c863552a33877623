/* What the registry, the servers, the lessees and the network store; and the names in it. */

#define SERVERS 2
#define LESSEES 2

/* The slot's record, and what the operator restores. */
typedef Record {
  byte nonce; /* of the claim; 0: no holder */
  byte bound; /* ticks below it are used up */
  byte word;  /* of its last writer */
};
Record slot, old_slot;
byte floor, era;
bit has_backup, lost, was_lost;
#define REACHABLE (!lost)

/* A server's table has one entry: the lease, with the claim that backs it. */
typedef Lease {
  byte nonce;    /* of the claim, and the lease's secret id; 0: none */
  byte token;    /* the lessee's */
  byte from;
  byte bound;    /* R: acknowledged by the registry */
  byte promised; /* the highest end that was sent */
  byte turn;     /* of the request that was accepted last */
  byte word;
  byte era;
  bit gone; /* answers 410 */
};
Lease lease[SERVERS];
byte kept[SERVERS]; /* in the state folder: at or above each promise */
#ifdef WITH_STARTS
bit up[SERVERS]; /* runs, and has compared its state folder with the registry */
#define UP(s) (up[s])
byte begin, old_begin; /* of the record's claim */
byte kept_nonce[SERVERS], old_kept_nonce[SERVERS]; /* of the claim of kept[s] */
/* The registry shows that this claim reached its kept bound and ended later: in its record or its past. */
bit ended[SERVERS], old_ended[SERVERS];
#define TAKEN_BY_FOLDERS(n) \
  || kept_nonce[0] == n || kept_nonce[1] == n || old_kept_nonce[0] == n || old_kept_nonce[1] == n

/* Before the record's claim is replaced, or released. */
inline NoteEnd() {
  i = 0;
  do
  :: i < SERVERS ->
     if
     :: slot.nonce != 0 && slot.nonce == kept_nonce[i] && slot.bound >= kept[i] -> ended[i] = 1
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}
bit below[SERVERS]; /* another claim began below kept[s]: the slot's past names it, also after its end */
#define BEGINS_BELOW(s) (begin < kept[s] && !ended[s])
inline NoteBegin(base) {
  begin = base;
  below[0] = below[0] || BEGINS_BELOW(0);
  below[1] = below[1] || BEGINS_BELOW(1)
}
/* The bound of a later claim replaces that of an earlier one, which has ended. */
inline NoteKept(s) {
  if
  :: kept_nonce[s] != lease[s].nonce -> kept[s] = 0
  :: else
  fi;
  kept_nonce[s] = lease[s].nonce;
  ended[s] = 0;
  below[s] = 0
}
#else
#define UP(s) (true)
#define TAKEN_BY_FOLDERS(n)
#define NoteEnd() skip
#define NoteBegin(from) skip
#define NoteKept(s) skip
#endif

typedef Lessee {
  byte token;  /* 0: wants no lease */
  byte nonce;  /* of the lease that it has; 0: none */
  byte from, until;
  byte next_tick;
  byte turn;  /* acknowledged */
  byte fresh; /* of the request under way; 0: none */
  bit open;   /* issues */
  bit leaves; /* asks for the end of the lease */
};
Lessee lessee[LESSEES];

typedef Answer {
  byte nonce, from, until, turn;
  bit gone;
  bit on_its_way;
};
Answer answer[LESSEES];

/* A duplicate of a PUT, which a proxy delivers at any later moment. */
#ifdef WITH_STALE
typedef Duplicate {
  byte nonce, turn, acknowledged, until;
  bit known; /* the server has accepted this turn */
};
Duplicate duplicate;
#endif

short issued;     /* bit t: tick t was issued */
byte unseen_upto; /* ticks below it may be issued twice, until every server has compared its folder */
byte copies_upto; /* ticks below it may be issued by both copies: detected, not prevented */
bit copied;
byte ends; /* how many lessees have ended, if that is limited */
byte i, n, t; /* scratch, zero between events */

inline AtLeast(variable, value) {
  if
  :: variable < value -> variable = value
  :: else
  fi
}

/* Nonces, tokens, turns and words are names: they are only compared. */

#ifdef WITH_STALE
#define TAKEN_BY_DUPLICATE(n) || duplicate.nonce == n || duplicate.turn == n || duplicate.acknowledged == n
#else
#define TAKEN_BY_DUPLICATE(n)
#endif
#define TAKEN_BY_RECORDS(n)                                                                        \
  (slot.nonce == n || slot.word == n || old_slot.nonce == n || old_slot.word == n TAKEN_BY_DUPLICATE(n) \
   TAKEN_BY_FOLDERS(n))
#define TAKEN_BY_LEASE(s, n) \
  (lease[s].nonce == n || lease[s].token == n || lease[s].turn == n || lease[s].word == n)
#define TAKEN_BY_LESSEE(l, n)                                                                     \
  (lessee[l].token == n || lessee[l].nonce == n || lessee[l].turn == n || lessee[l].fresh == n || \
   answer[l].nonce == n || answer[l].turn == n)

/* n becomes a name that no variable stores. */
inline Draw() {
  n = 1;
  do
  :: TAKEN_BY_RECORDS(n) || TAKEN_BY_LEASE(0, n) || TAKEN_BY_LEASE(1, n) || TAKEN_BY_LESSEE(0, n) ||
         TAKEN_BY_LESSEE(1, n) ->
     n++
  :: else -> break
  od
}

/* Follows every event. Names are renumbered in the order of the variables that store them: one state
 * instead of all its permutations. */
#define NAMES 32
#ifdef RENUMBERS
byte renumbered[NAMES]; /* scratch */

inline Renumber(place) {
  if
  :: place != 0 && renumbered[place] == 0 -> n++; renumbered[place] = n
  :: else
  fi;
  place = renumbered[place]
}

inline Settle() {
  n = 0;
  Renumber(slot.nonce);
  Renumber(slot.word);
  Renumber(old_slot.nonce);
  Renumber(old_slot.word);
  i = 0;
  do
  :: i < LESSEES -> /* as many as servers */
     Renumber(lease[i].nonce);
     Renumber(lease[i].token);
     Renumber(lease[i].turn);
     Renumber(lease[i].word);
     Renumber(lessee[i].token);
     Renumber(lessee[i].nonce);
     Renumber(lessee[i].turn);
     Renumber(lessee[i].fresh);
     Renumber(answer[i].nonce);
     Renumber(answer[i].turn);
#ifdef WITH_STARTS
     Renumber(kept_nonce[i]);
     Renumber(old_kept_nonce[i]);
#endif
     i++
  :: else -> break
  od;
#ifdef WITH_STALE
  Renumber(duplicate.nonce);
  Renumber(duplicate.turn);
  Renumber(duplicate.acknowledged);
#endif
  n = 0;
  i = 0;
  do
  :: i < NAMES -> renumbered[i] = 0; i++
  :: else -> break
  od;
  i = 0
}
#else
inline Settle() {
  skip
}
#endif
