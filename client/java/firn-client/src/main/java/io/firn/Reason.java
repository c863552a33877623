package io.firn;

/** The reason of a refusal. */
public enum Reason {
  BAD_REQUEST(Retry.NEVER, true),
  UNKNOWN_TAG(Retry.NEVER, true),
  NOT_READY(Retry.ELSEWHERE, false),
  CLOCK(Retry.ELSEWHERE, false),
  OVERLOADED(Retry.ELSEWHERE, false),
  EXHAUSTED(Retry.IF_SAID, true),
  DRAINING(Retry.ELSEWHERE, false),
  REJECTED(Retry.NEVER, true),
  STORE_DOWN(Retry.ELSEWHERE, false),
  INTERNAL(Retry.IF_SAID, false);

  /** Whether a call that is refused fails over. "Refusals" in client/call/FAILOVER.md has the same columns. */
  enum Retry {
    ELSEWHERE,
    IF_SAID, // if the server reports that another one may help
    NEVER // every server would refuse so
  }

  private static final Reason[] ALL = values();

  final Retry retry;
  /** The time that the refusal took counts as the server's latency. */
  final boolean isAnswer;

  Reason(Retry retry, boolean isAnswer) {
    this.retry = retry;
    this.isAnswer = isAnswer;
  }

  /** The contract's numbers start at 1; a number that is newer than this client means INTERNAL. */
  static Reason of(int number) {
    return number > 0 && number <= ALL.length ? ALL[number - 1] : INTERNAL;
  }
}
