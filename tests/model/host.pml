/* A host: at most one process (because of the lock on the grant file), and its grant file.
 *
 * 1. IDLE stands for "no process" and for "a process without a claim" alike.
 * 2. ASKING has read a slot and chosen a nonce. WAITING has sent a set and has no answer.
 *    SERVING holds a claim. CLOSED drained it and has not yet sent the release.
 * 3. When a phase ends, only the file is kept.
 */

#define IDLE 0
#define ASKING 1
#define WAITING 2
#define SERVING 3
#define CLOSED 4
#define RELEASED 5 /* one mutant only */

typedef Host {
  byte phase;
  byte slot;
  byte nonce;
  byte ver;      /* V: of the slot, as remembered */
  byte czxid;    /* Z */
  byte meta_ver; /* M */
  byte era;      /* of the data that it read; 0: it has not yet */
  byte base;
  byte bound;    /* R: asked for while ASKING and WAITING, acknowledged while SERVING */
  byte last;     /* highest tick issued under this claim */
  bit issued;    /* whether there is one */
  bit inherits;  /* ASKING, WAITING: on top of the grant file's claim */
  bit has_read;  /* this session has read the record since it began */
#ifdef WITH_TWINS
  byte word;    /* the last that was acknowledged; while ASKING and WAITING none */
  byte pending; /* of what it sends from this version; 0: nothing yet */
#endif
#ifdef MUTANT_NONCE_PER_PROCESS
  byte own_nonce; /* of the process */
#endif
};

/* The grant file. An empty one has nonce 0. */
typedef Grant {
  byte nonce;
  byte slot;
  byte bound;
  byte ver;
  byte czxid;
  byte meta_ver;
  byte L;
#ifdef WITH_TWINS
  byte word;
  byte pending;
#endif
#ifdef REMEMBERS_FIRST_L
  byte first_L;   /* what the disk may still hold after a reboot: nothing is synced */
#endif
  bit copied;     /* is in another inode than the one it names */
  bit older_boot; /* names another boot than this one */
};

Host host[HOSTS];
Grant file[HOSTS];
byte i;    /* scratch, zero between events */
byte n;    /* scratch */
byte ask_from, ask_upto; /* scratch: the stamps that an attempt asks for */
byte taken; /* scratch */

/* More nonces than variables that store one. */
#ifdef WITH_TWINS
#define NONCES (4 * SLOTS + 7 * HOSTS + 4)
#else
#define NONCES (2 * SLOTS + 3 * HOSTS + 3)
#endif

#define NEXT_TICK(h) (host[h].issued -> host[h].last + 1 : host[h].base)
/* A grant file is void for others' writes, but still names the claim for this process. */
#define FILE_NAMES_CLAIM(h) (file[h].nonce == host[h].nonce && file[h].slot == host[h].slot)

inline ForgetClaim(h) {
  host[h].phase = IDLE;
  host[h].slot = 0;
  host[h].nonce = 0;
  host[h].ver = 0;
  host[h].czxid = 0;
  host[h].meta_ver = 0;
  host[h].era = 0;
  host[h].base = 0;
  host[h].bound = 0;
  host[h].last = 0;
  host[h].issued = 0;
  host[h].inherits = 0;
  host[h].has_read = 0;
#ifdef WITH_TWINS
  host[h].word = 0;
  host[h].pending = 0;
#endif
}

inline ProcessEnds(h) {
  ForgetClaim(h);
#ifdef MUTANT_NONCE_PER_PROCESS
  host[h].own_nonce = 0;
#endif
}

/* n becomes a nonce that no variable stores: equivalent to a new one, so the number of attempts in
 * a run needs no limit. */
inline DrawNonce() {
  n = 0;
  do
  :: n++;
     taken = 0;
     i = 0;
     do
     :: i < SLOTS ->
        taken = taken || slot[i].nonce == n;
#ifdef WITH_TWINS
        taken = taken || slot[i].word == n;
#endif
#ifdef WITH_LOSS
        taken = taken || old_slot[i].nonce == n;
#endif
        i++
     :: else -> break
     od;
     i = 0;
     do
     :: i < HOSTS ->
        taken = taken || host[i].nonce == n || file[i].nonce == n;
#ifdef WITH_TWINS
        taken = taken || host[i].word == n || host[i].pending == n || file[i].word == n ||
            file[i].pending == n;
#endif
#ifdef MUTANT_NONCE_PER_PROCESS
        taken = taken || host[i].own_nonce == n;
#endif
        i++
     :: else -> break
     od;
     i = 0;
     taken = taken || (late.on_its_way && (late.nonce == n || LATE_WORD == n));
     if
     :: !taken -> break
     :: else
     fi
  od;
  taken = 0;
}

/* Ends every event. Nonces are only compared, so they can be renumbered in the order of the
 * variables that store them: one state instead of all its permutations. */
#ifdef RENUMBERS
byte renumbered[NONCES]; /* scratch */

inline Renumber(place) {
  if
  :: place != 0 && renumbered[place] == 0 -> n++; renumbered[place] = n
  :: else
  fi;
  place = renumbered[place]
}

inline Settle() {
  n = 0;
  i = 0;
  do
  :: i < SLOTS ->
     Renumber(slot[i].nonce);
#ifdef WITH_TWINS
     Renumber(slot[i].word);
#endif
#ifdef WITH_LOSS
     Renumber(old_slot[i].nonce);
#endif
     i++
  :: else -> break
  od;
  i = 0;
  do
  :: i < HOSTS ->
     Renumber(host[i].nonce);
     Renumber(file[i].nonce);
#ifdef WITH_TWINS
     Renumber(host[i].word);
     Renumber(host[i].pending);
     Renumber(file[i].word);
     Renumber(file[i].pending);
#endif
#ifdef MUTANT_NONCE_PER_PROCESS
     Renumber(host[i].own_nonce);
#endif
     i++
  :: else -> break
  od;
  Renumber(late.nonce);
#ifdef WITH_TWINS
  Renumber(late.word);
#endif
  n = 0;
  i = 0;
  do
  :: i < NONCES -> renumbered[i] = 0; i++
  :: else -> break
  od;
  i = 0;
}
#else
inline Settle() {
  skip
}
#endif
