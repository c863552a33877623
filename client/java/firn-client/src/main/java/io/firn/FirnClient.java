package io.firn;

import java.nio.charset.StandardCharsets;
import java.util.AbstractList;
import java.util.List;
import java.util.RandomAccess;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/**
 * A client of a cluster of Firn servers.
 *
 * <pre>
 * FirnClient client = new FirnClient(new Options("firn://10.0.0.7:7609,10.0.0.8:7609"));
 * long id = client.nextId("order");
 * </pre>
 *
 * <p>Thread-safe: use one client for all threads, as long as the program runs. Calls end within their
 * deadline, with ids or with a {@link FirnException} that lists every attempt. A tag is the name under
 * which a program requests ids; an empty tag is the servers' default.
 *
 * <p>Asynchronous calls return at once, and complete their future with ids or with a {@link FirnException}.
 * Cancelling a future does not stop a call that has begun; its id is lost.
 */
public final class FirnClient implements AutoCloseable {
  /** Ids in a list, without an object for each. */
  private static final class IdList extends AbstractList<Long> implements RandomAccess {
    private final long[] ids;

    IdList(long[] ids) {
      this.ids = ids;
    }

    @Override
    public Long get(int index) {
      return ids[index];
    }

    @Override
    public int size() {
      return ids.length;
    }
  }

  private static final int TAG_MAX = 128; // bytes
  private static final int COUNT_MAX = 100_000;

  final Engine engine;

  /** Does not wait for a server. IllegalArgumentException names every fault of the options. */
  public FirnClient(Options options) {
    Options own = options.copy();
    engine = new Engine(own, own.check());
  }

  /** Returns one id; from memory, if the options' local ranges name the tag. */
  public long nextId(String tag) throws FirnException {
    return nextId(tag, engine.options.deadlineMs);
  }

  /** Returns one id, within the call's own deadline. */
  public long nextId(String tag, long deadlineMs) throws FirnException {
    Supply supply = engine.supplies.get(tag);
    if (supply == null) {
      return call(Ask.id(tag), deadlineMs);
    }
    long id = supply.take();
    return id != 0 ? id : nextIdAfterWait(supply, tag, deadlineMs);
  }

  private long nextIdAfterWait(Supply supply, String tag, long deadlineMs) throws FirnException {
    long began = Server.now();
    long id = supply.take(deadlineMs / 4);
    return id != 0 ? id : call(Ask.id(tag), deadlineMs - (Server.now() - began));
  }

  /** Returns one id without waiting; from memory, if the options' local ranges name the tag. */
  public CompletableFuture<Long> nextIdAsync(String tag) {
    return nextIdAsync(tag, engine.options.deadlineMs);
  }

  /** Returns one id without waiting, within the call's own deadline. */
  public CompletableFuture<Long> nextIdAsync(String tag, long deadlineMs) {
    Supply supply = tag == null ? null : engine.supplies.get(tag);
    long id = supply == null ? 0 : supply.take();
    if (id != 0) {
      return CompletableFuture.completedFuture(id);
    }
    return supply == null ? start(Ask.id(tag), deadlineMs, Function.identity())
        : engine.async.startLocal(supply, Ask.id(tag), deadlineMs);
  }

  /**
   * Returns exactly `count` ids, 1 to 100000; in ascending order, unless the tag is obfuscated. They come from
   * memory, if the options' local ranges name the tag and enough ids are there.
   */
  public List<Long> nextIds(String tag, int count) throws FirnException {
    return nextIds(tag, count, engine.options.deadlineMs);
  }

  /** Returns `count` ids, within the call's own deadline. */
  public List<Long> nextIds(String tag, int count, long deadlineMs) throws FirnException {
    if (isOutside(count)) {
      throw badCount(count);
    }
    Supply supply = engine.supplies.get(tag);
    long[] ids = supply == null ? null : supply.takeMany(count);
    return new IdList(ids != null ? ids : call(Ask.ids(tag, count), deadlineMs));
  }

  /** Returns `count` ids without waiting. */
  public CompletableFuture<List<Long>> nextIdsAsync(String tag, int count) {
    return nextIdsAsync(tag, count, engine.options.deadlineMs);
  }

  /** Returns `count` ids without waiting, within the call's own deadline. */
  public CompletableFuture<List<Long>> nextIdsAsync(String tag, int count, long deadlineMs) {
    if (isOutside(count)) {
      return CompletableFuture.failedFuture(badCount(count));
    }
    Supply supply = tag == null ? null : engine.supplies.get(tag);
    long[] ids = supply == null ? null : supply.takeMany(count);
    return ids != null ? CompletableFuture.completedFuture(new IdList(ids))
        : start(Ask.ids(tag, count), deadlineMs, IdList::new);
  }

  /** Returns one id in the text form of its tag. */
  public String nextText(String tag) throws FirnException {
    return nextText(tag, engine.options.deadlineMs);
  }

  /** Returns one id as text, within the call's own deadline. */
  public String nextText(String tag, long deadlineMs) throws FirnException {
    return call(Ask.text(tag), deadlineMs);
  }

  /** Returns one id as text without waiting. */
  public CompletableFuture<String> nextTextAsync(String tag) {
    return nextTextAsync(tag, engine.options.deadlineMs);
  }

  /** Returns one id as text without waiting, within the call's own deadline. */
  public CompletableFuture<String> nextTextAsync(String tag, long deadlineMs) {
    return start(Ask.text(tag), deadlineMs, Function.identity());
  }

  /** Returns the options of a generator that makes ids in this process, under a leased machine id. The name is shown to
   * operators and has at most 64 bytes. */
  public LocalGenerator.Builder localGenerator(String name) {
    return new LocalGenerator.Builder(this, name);
  }

  /** Asks a server for its status, within the deadline of a call, and takes no id. For health checks. */
  public void ping() throws FirnException {
    engine.call(Ask.status(), engine.options.deadlineMs);
  }

  /** Returns the servers as this client sees them, in the order of their addresses. */
  public List<SeenServer> servers() {
    return engine.fleet.view();
  }

  /** Returns what the client has done since it was created. */
  public Counters counters() {
    return new Counters(engine.tally);
  }

  /** Does not wait: calls in progress end with the kind CLOSED, and so do later ones. */
  @Override
  public void close() {
    engine.close();
  }

  private <T> T call(Ask<T> ask, long deadlineMs) throws FirnException {
    FirnException fault = faultOf(ask.tag);
    if (fault != null) {
      throw fault;
    }
    return engine.call(ask, deadlineMs);
  }

  private <T, R> CompletableFuture<R> start(Ask<T> ask, long deadlineMs, Function<T, R> result) {
    FirnException fault = faultOf(ask.tag);
    return fault != null ? CompletableFuture.failedFuture(fault) : engine.async.start(ask, deadlineMs, result);
  }

  private static FirnException faultOf(String tag) {
    if (tag == null) {
      return badRequest("the tag is null; an empty one is the servers' default");
    }
    return tag.getBytes(StandardCharsets.UTF_8).length > TAG_MAX
        ? badRequest("a tag has at most " + TAG_MAX + " bytes") : null;
  }

  private static boolean isOutside(int count) {
    return count < 1 || count > COUNT_MAX;
  }

  private static FirnException badCount(int count) {
    return badRequest("count is " + count + "; it must be 1 to " + COUNT_MAX);
  }

  private static FirnException badRequest(String sentence) {
    return new FirnException(FirnException.Kind.REFUSED, sentence, Reason.BAD_REQUEST, 0, List.of());
  }
}
