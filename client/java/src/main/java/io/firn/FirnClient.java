package io.firn;

import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Ids from a cluster of Firn servers.
 *
 * <pre>
 * FirnClient client = new FirnClient(new Options("firn://10.0.0.7:7609,10.0.0.8:7609"));
 * long id = client.nextId("order");
 * </pre>
 *
 * <p>Thread-safe: share one between all threads, for as long as the program runs. Calls end within their
 * deadline, with ids or with a {@link FirnException} that lists every server that was asked. A tag is a
 * name under which ids are asked for; an empty one is the servers' default.
 */
public final class FirnClient implements AutoCloseable {
  private static final int TAG_MAX = 128; // bytes
  private static final int COUNT_MAX = 100_000;

  private final Engine engine;

  /** Waits for nobody. IllegalArgumentException: options that cannot be used; it names every fault. */
  public FirnClient(Options options) {
    engine = new Engine(options, options.check());
  }

  /** One id; from memory, where the options' local ranges name the tag. */
  public long nextId(String tag) throws FirnException {
    return nextId(tag, engine.options.deadlineMs);
  }

  /** One id within a time of the call's own. */
  public long nextId(String tag, long deadlineMs) throws FirnException {
    long began = Server.now();
    Supply supply = engine.supplies.get(tag);
    if (supply != null) {
      long id = supply.take(deadlineMs / 4);
      if (id != 0) {
        return id;
      }
    }
    return call(Ask.id(tag), deadlineMs - (Server.now() - began));
  }

  /** Exactly `count` ids, 1 to 100000; in ascending order, unless the tag obfuscates them. */
  public List<Long> nextIds(String tag, int count) throws FirnException {
    return nextIds(tag, count, engine.options.deadlineMs);
  }

  /** So many ids within a time of the call's own. */
  public List<Long> nextIds(String tag, int count, long deadlineMs) throws FirnException {
    if (count < 1 || count > COUNT_MAX) {
      throw badRequest(count + " ids are not 1 to " + COUNT_MAX);
    }
    return call(Ask.ids(tag, count), deadlineMs);
  }

  /** One id in the text form of its tag. */
  public String nextText(String tag) throws FirnException {
    return nextText(tag, engine.options.deadlineMs);
  }

  /** A text within a time of the call's own. */
  public String nextText(String tag, long deadlineMs) throws FirnException {
    return call(Ask.text(tag), deadlineMs);
  }

  /** The servers as this client sees them, in the order of their addresses. */
  public List<SeenServer> servers() {
    return engine.fleet.view();
  }

  /** Waits for nothing: calls that are under way end with the kind CLOSED, and so do later ones. */
  @Override
  public void close() {
    engine.close();
  }

  private <T> T call(Ask<T> ask, long deadlineMs) throws FirnException {
    if (ask.tag.getBytes(StandardCharsets.UTF_8).length > TAG_MAX) {
      throw badRequest("a tag has at most " + TAG_MAX + " bytes");
    }
    return engine.call(ask, deadlineMs);
  }

  private static FirnException badRequest(String sentence) {
    return new FirnException(FirnException.Kind.REFUSED, sentence, Reason.BAD_REQUEST, 0, List.of());
  }
}
