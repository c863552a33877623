/* After the end of all faults service returns: a host holds a claim that the registry knows, with a
 * tick to issue, unless the horizon or the versions of this small world are used up.
 *
 * From that moment on nothing fails, and each host and the operator take turns repeatedly, doing
 * what their rules allow. So no fairness has to be assumed: if service never returns in a run, the
 * rules do not lead there.
 */
#ifdef LIVENESS
bit calm;

#define SERVES(h) \
  (host[h].phase == SERVING && host[h].has_read && \
   ((host[h].issued && host[h].last + 1 < host[h].bound) || \
    (!host[h].issued && host[h].base < host[h].bound)))
#define USED_UP \
  (slot[0].bound + WINDOW > TICKS || meta.floor + WINDOW > TICKS || !MORE_VERSIONS(0))

/* Its claim is lost, or cannot be released: the process claims again. */
inline LetsGo(h) {
  d_step {
    !meta.missing && !LOST && !meta.frozen &&
        ((host[h].phase == SERVING && !RECORD_IS_MINE(h)) ||
         (host[h].phase == SERVING && !SERVES(h) &&
          !WOULD_TAKE(host[h].slot, host[h].ver, host[h].meta_ver, host[h].era)) ||
         host[h].phase == CLOSED) ->
    printf("host %d: lets go\n", h);
    ForgetClaim(h);
    Settle();
  }
}

inline HasItsTurn(h) {
  if
  :: InheritsFromFile(h)
  :: ReadsSlot(h, 0)
  :: SetIsAnswered(h)
  :: ReadsBackItsAttempt(h)
  :: ReadsBackItsClaim(h)
  :: RenewalIsAnswered(h)
  :: LetsGo(h)
#ifdef WITH_LOSS
  :: FindsTheLoss(h)
#endif
  :: else
  fi
}

inline AllGoesWell() {
  do
  :: HasItsTurn(0);
     HasItsTurn(1);
#ifdef WITH_LATE
     if
     :: LateWriteArrives()
     :: skip
     fi;
#endif
#ifdef WITH_LOSS
     if
     :: OperatorRestores()
     :: else
     fi;
#endif
  od
}

ltl service_returns { [] (calm -> <> (SERVES(0) || SERVES(1) || USED_UP)) }
#endif
