/* Faults of hosts, files and the registry's data. */

/* Also represents: stopping at once, giving up a claim, a kill -9 between any two steps. */
inline Crashes(h) {
  d_step {
    host[h].phase != IDLE ->
    printf("host %d: crashes\n", h);
    ProcessEnds(h);
    Settle();
  }
}

#ifdef WITH_REBOOT
/* The grant file returns as the disk had it: with an older L. */
inline Reboots(h) {
  d_step {
    file[h].nonce != 0 && !file[h].older_boot ->
    printf("host %d: reboots\n", h);
    ProcessEnds(h);
    file[h].older_boot = 1;
    file[h].L = file[h].first_L;
    Settle();
  }
}
#endif

#ifdef WITH_DEVICE
/* The file system is lost and mounted again within one boot, without the last writes: the grant is
 * of this boot and in its inode. A grant in memory is not affected; then only the process ends.
 */
inline DeviceIsLost(h) {
  d_step {
    host[h].phase != IDLE ->
    printf("host %d: loses its device, which comes back older\n", h);
    ProcessEnds(h);
#ifdef MUTANT_GRANT_ON_DISK
    file[h].L = file[h].first_L;
#endif
    Settle();
  }
}
#endif

#ifdef WITH_TWINS
/* A machine is copied with all its memory, grant and lock, and both copies run. */
inline IsTwinned(source, target) {
  d_step {
    !twinned && (host[source].phase != IDLE || file[source].nonce != 0) &&
        host[target].phase == IDLE ->
    printf("host %d: becomes a copy of host %d\n", target, source);
    twinned = 1;
    twins_upto = host[source].bound;
    AtLeast(twins_upto, file[source].bound);
    if
    :: host[source].phase == SERVING && host[source].pending != 0 || file[source].pending != 0 ->
       twins_upto = twins_upto + WINDOW /* both may recognise the pending write as their own */
    :: else
    fi;
    CopyFile(source, target);
    CopyHost(source, target);
    Settle();
  }
}

inline CopyHost(source, target) {
  host[target].phase = host[source].phase;
  host[target].slot = host[source].slot;
  host[target].nonce = host[source].nonce;
  host[target].ver = host[source].ver;
  host[target].czxid = host[source].czxid;
  host[target].meta_ver = host[source].meta_ver;
  host[target].era = host[source].era;
  host[target].base = host[source].base;
  host[target].bound = host[source].bound;
  host[target].last = host[source].last;
  host[target].issued = host[source].issued;
  host[target].inherits = host[source].inherits;
  host[target].has_read = host[source].has_read;
  host[target].word = host[source].word;
  host[target].pending = host[source].pending;
}
#endif

/* Full or broken disk: the holder removes the file and continues without it. */
inline LosesItsFile(h) {
  d_step {
    file[h].nonce != 0 ->
    printf("host %d: its grant file is removed\n", h);
    VoidGrant(h);
    Settle();
  }
}

inline CopyFile(source, target) {
  file[target].nonce = file[source].nonce;
  file[target].slot = file[source].slot;
  file[target].bound = file[source].bound;
  file[target].ver = file[source].ver;
  file[target].czxid = file[source].czxid;
  file[target].meta_ver = file[source].meta_ver;
  file[target].L = file[source].L;
#ifdef REMEMBERS_FIRST_L
  file[target].first_L = file[source].first_L;
#endif
  file[target].older_boot = file[source].older_boot;
#ifdef WITH_TWINS
  file[target].word = file[source].word;
  file[target].pending = file[source].pending;
  file[target].copied = file[source].copied;
#endif
}

/* Taken at any time; used, if at all, after the original has changed. */
inline FileIsCopied(source, target) {
  d_step {
    file[source].nonce != 0 && !file[source].copied && host[target].phase == IDLE ->
    printf("host %d: gets a copy of host %d's grant file\n", target, source);
    CopyFile(source, target);
    file[target].copied = 1;
    Settle();
  }
}

/* The copy was a backup: back in its own folder it may get its old inode number again. */
inline CopyIsPutBack(source, target) {
  d_step {
    file[source].nonce != 0 && file[source].copied && host[target].phase == IDLE ->
    printf("host %d: its grant file is put back from a backup\n", target);
    CopyFile(source, target);
#ifdef MUTANT_INODE_NUMBER_ONLY
    file[target].copied = 0;
#else
    file[target].copied = 1;
#endif
    Settle();
  }
}

#ifdef WITH_LOSS
inline EndSessions() {
#ifndef WITH_STAY
  ForgetLate();
  i = 0;
  do
  :: i < HOSTS ->
     host[i].has_read = 0;
     if
     :: host[i].phase == ASKING || host[i].phase == CLOSED -> ForgetClaim(i)
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0;
#else
  skip
#endif
}

inline BackupIsTaken() {
  d_step {
    !has_backup && losses < LOSSES && !meta.frozen ->
    printf("registry: a backup is taken\n");
    i = 0;
    do
    :: i < SLOTS ->
       old_slot[i].nonce = slot[i].nonce;
       old_slot[i].bound = slot[i].bound;
       old_slot[i].ver = slot[i].ver;
       old_slot[i].czxid = slot[i].czxid;
       i++
    :: else -> break
    od;
    i = 0;
    old_meta.ver = meta.ver;
    old_meta.floor = meta.floor;
    old_meta.era = meta.era;
    has_backup = 1;
    Settle();
  }
}

inline RollsBack() {
  d_step {
    has_backup && losses < LOSSES ->
    printf("registry: ROLLED BACK to the backup\n");
    i = 0;
    do
    :: i < SLOTS ->
       slot[i].nonce = old_slot[i].nonce;
       slot[i].bound = old_slot[i].bound;
       slot[i].ver = old_slot[i].ver;
       slot[i].czxid = old_slot[i].czxid;
       old_slot[i].nonce = 0;
       old_slot[i].bound = 0;
       old_slot[i].ver = 0;
       old_slot[i].czxid = 0;
       i++
    :: else -> break
    od;
    i = 0;
    meta.ver = old_meta.ver;
    meta.floor = old_meta.floor;
    meta.era = old_meta.era;
    old_meta.era = 0;
    old_meta.ver = 0;
    old_meta.floor = 0;
    EndSessions();
    has_backup = 0;
    losses++;
    lost = 1;
    Settle();
  }
}

inline Recreate(s) {
  slot[s].nonce = 0;
  slot[s].bound = 0;
  slot[s].ver = 1;
}

/* The same first steps in an empty registry lead to the same numbers, including czxid. */
inline IsWiped() {
  d_step {
    losses < LOSSES ->
    printf("registry: WIPED\n");
    i = 0;
    do
    :: i < SLOTS -> Recreate(i); i++
    :: else -> break
    od;
    i = 0;
    meta.missing = 1;
    meta.ver = 0;
    meta.floor = 0;
    meta.era = 0;
    meta.frozen = 0;
    EndSessions();
    losses++;
    lost = 1;
    Settle();
  }
}

/* By hand; the ensemble and its sessions continue. */
inline RecordIsDeleted() {
  d_step {
    losses < LOSSES ->
    printf("registry: the record of slot 0 is DELETED\n");
    Recreate(0);
    slot[0].czxid = slot[0].czxid + 1;
    losses++;
#ifndef MUTANT_QUIET_RECORD
    lost = 1;
#endif
    Settle();
  }
}

/* A holder whose record is older than it remembers, or another node, sets `frozen`; but not when
 * the floor is at or above its bound: then a restore has covered its ticks, and a freeze would
 * stop a healthy cluster again. */
#ifdef MUTANT_FREEZES_AGAIN
#define FLOOR_COVERS(h) (false)
#else
#define FLOOR_COVERS(h) (meta.floor >= host[h].bound)
#endif

inline FindsTheLoss(h) {
  d_step {
    host[h].phase == SERVING && !meta.missing && !meta.frozen && !FLOOR_COVERS(h) &&
        (slot[host[h].slot].ver < host[h].ver || slot[host[h].slot].czxid != host[h].czxid) ->
    printf("host %d: finds that the registry lost data, freezes it\n", h);
    HOLDS(lost);
    REACHES(7);
    meta.frozen = 1;
    meta.ver = meta.ver + 1;
    lost = 0;
    Settle();
  }
}

/* firn restore, or firn init after a wipe. A new meta node's version starts as the first one's. */
inline OperatorRestores() {
  d_step {
    lost || meta.frozen ->
    n = 0;
    i = 0;
    do
    :: i < SLOTS -> 
       AtLeast(n, slot[i].bound);
       do
       :: (issued[i] >> n) != 0 -> n++ /* what dead holders issued lies below now + 3 windows */
       :: else -> break
       od;
       i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < HOSTS -> AtLeast(n, host[i].bound); AtLeast(n, file[i].bound); i++
    :: else -> break
    od;
    i = 0;
    printf("registry: restored, floor %d, meta %d\n", n, meta.ver + 1);
    meta.floor = n;
    n = 0;
    BeginEra();
    meta.ver = meta.ver + 1;
    meta.frozen = 0;
    meta.missing = 0;
    lost = 0;
    Settle();
  }
}
#endif
