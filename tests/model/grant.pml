/* The grant file: the permission to resume a dead process's claim.
 *
 * 1. It is valid only in its own inode and in the boot that wrote it.
 * 2. It names the claim before the claim's first id, and L before the ids below it.
 * 3. L never falls under one claim.
 */

#ifdef MUTANT_TRUST_COPY
#define NOT_A_COPY(h) (true)
#else
#define NOT_A_COPY(h) (!file[h].copied)
#endif

#ifdef MUTANT_TRUST_OLD_BOOT
#define THIS_BOOT(h) (true)
#else
#define THIS_BOOT(h) (!file[h].older_boot)
#endif

#ifdef MUTANT_FILE_WITHOUT_M
#define FILE_META_IS(h, m) (true)
#define FILE_META(h) meta.ver
#else
#define FILE_META_IS(h, m) (file[h].meta_ver == (m))
#define FILE_META(h) file[h].meta_ver
#endif

#define FILE_IS_OURS(h) (file[h].nonce != 0 && NOT_A_COPY(h) && THIS_BOOT(h))

inline VoidGrant(h) {
  file[h].nonce = 0;
  file[h].slot = 0;
  file[h].bound = 0;
  file[h].ver = 0;
  file[h].czxid = 0;
  file[h].meta_ver = 0;
  file[h].L = 0;
#ifdef REMEMBERS_FIRST_L
  file[h].first_L = 0;
#endif
  file[h].copied = 0;
  file[h].older_boot = 0;
#ifdef WITH_TWINS
  file[h].word = 0;
  file[h].pending = 0;
#endif
}

inline KeepWords(h) {
#ifdef WITH_TWINS
  file[h].word = host[h].word;
  file[h].pending = host[h].pending;
#else
  skip
#endif
}

/* A claim begins: rule 2. */
inline WriteGrant(h) {
  file[h].nonce = host[h].nonce;
  file[h].slot = host[h].slot;
  file[h].bound = host[h].bound;
  file[h].ver = host[h].ver;
  file[h].czxid = host[h].czxid;
  file[h].meta_ver = host[h].meta_ver;
  file[h].L = host[h].base;
#ifdef REMEMBERS_FIRST_L
  file[h].first_L = host[h].base;
#endif
  file[h].copied = 0;
  file[h].older_boot = 0;
  KeepWords(h);
}

/* The claim's bound or version changed; L stays the same: rule 3. */
inline RewriteGrant(h) {
  if
  :: FILE_NAMES_CLAIM(h) ->
     file[h].bound = host[h].bound;
     file[h].ver = host[h].ver;
     KeepWords(h);
#ifdef MUTANT_LOWERS_L
     file[h].L = file[h].first_L;
#endif
     HOLDS(file[h].L >= NEXT_TICK(h)) /* 4 */
  :: else
  fi
}

/* L is raised just before the tick that needs it: the tightest limit that rule 2 allows, so a
 * successor may issue the most. */
inline PushL(h, t) {
  if
  :: FILE_NAMES_CLAIM(h) && file[h].L <= t -> file[h].L = t + 1
  :: else
  fi
}
