package io.firn;

import io.firn.Pipeline.Exchange;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/** One asynchronous call. It takes the next step of its Call when a connection, a timer or news of servers calls it, and
 * blocks no thread. A server that answers other calls but not this one keeps the request: the call asks the next server,
 * and takes whichever answer comes first. Thread-safe; the pools' and connections' locks are taken within its own. */
final class AsyncCall<T> {
  private static final long GRACE_MS = 10; // for an answer that this process has not read yet

  private final Engine engine;
  private final Call<T> call;
  private final CompletableFuture<Object> future;
  private final Function<T, ?> result;
  private final long beganNs = System.nanoTime();
  private long dueAt;
  private int waits; // counts them, because a timer or news may come for an earlier one
  private Server server; // that is asked, or has no room yet
  private Exchange<T> current;
  private long attemptNs; // when that attempt began
  private boolean again; // on another connection, because the first one was closed
  private boolean graced;
  private int late; // attempts that may still be answered
  private FirnException fault; // with which the call ends, unless a late answer comes first
  private boolean done;
  private Runnable delivery;

  AsyncCall(Engine engine, Ask<T> ask, long deadlineMs, CompletableFuture<Object> future, Function<T, ?> result) {
    this.engine = engine;
    this.future = future;
    this.result = result;
    call = new Call<>(engine.fleet, ask, deadlineMs);
  }

  Ask<T> ask() {
    return call.ask;
  }

  void start() {
    synchronized (this) {
      dueAt = call.until;
      engine.async.begins(this, dueAt);
      advance();
    }
    deliver();
  }

  private void advance() {
    try {
      server = call.next();
    } catch (FirnException why) {
      stall(why);
      return;
    }
    if (server == null) {
      int mine = ++waits;
      engine.async.await(() -> waited(mine), call.waitUntil, call.waitsForNews);
      return;
    }
    again = false;
    enter();
  }

  private void waited(int which) {
    synchronized (this) {
      if (!done && which == waits) {
        waits++;
        advance();
      }
    }
    deliver();
  }

  private void enter() {
    attemptNs = System.nanoTime();
    current = null;
    Pipeline to = server.pool.enter(engine, this);
    while (to != null) {
      send(to);
      to = current == null ? server.pool.enter(engine, this) : null;
    }
  }

  private void send(Pipeline to) {
    attemptNs = System.nanoTime(); // the time in the queue does not count as the server's
    current = to.send(this);
  }

  /** A connection has room for this call, which waited for it. Returns whether the call uses it. */
  boolean roomIn(Pipeline to) {
    boolean taken;
    synchronized (this) {
      taken = !done && server != null && current == null;
      if (taken && engine.fleet.isOut(server)) {
        taken = false;
        outcome(new Failure(Attempt.End.NO_ROOM, "it failed while this call waited for a connection"));
      } else if (taken) {
        send(to);
        if (current == null) {
          enter();
        }
      }
    }
    deliver();
    return taken;
  }

  /** The server to which the call waits for a connection gives it none. */
  void refused(Server by, Failure failure) {
    synchronized (this) {
      if (!done && server == by && current == null) {
        outcome(failure);
      }
    }
    deliver();
  }

  /** A request of this call has ended: with an answer, or with a failure. */
  void ended(Exchange<T> which, T answer, Failure failure) {
    synchronized (this) {
      if (which == current && !done) {
        if (answer != null) {
          call.answered(server);
          finish(answer, null);
        } else {
          outcome(failure);
        }
      } else if (!done) {
        late--;
        if (answer != null) { // it does not make up for the timeout: a server that is always late is ejected
          finish(answer, null);
        } else if (fault != null && late == 0) {
          finish(null, fault);
        }
      }
    }
    deliver();
  }

  /** The request has no answer within the time of an attempt, while others on its connection do. */
  void late(Exchange<T> which) {
    synchronized (this) {
      if (which == current && !done) {
        late++;
        outcome(new Failure(Attempt.End.TIMEOUT, ""));
      }
    }
    deliver();
  }

  private void outcome(Failure failure) {
    Server from = server;
    current = null;
    call.failed(from, failure, attemptNs);
    if (failure.stale && !again && Server.now() < call.until) {
      again = true;
      enter();
      return;
    }
    server = null;
    engine.fleet.giveBack(from);
    try {
      call.heed(from, failure);
    } catch (FirnException why) {
      finish(null, why);
      return;
    }
    advance();
  }

  /** Fails, unless a server that is late still answers. */
  private void stall(FirnException why) {
    fault = why;
    if (late == 0) {
      finish(null, why);
    }
  }

  /** The deadline has passed. */
  void over() {
    synchronized (this) {
      if (!done && !graced && current != null && current.on.hasUnread()) {
        graced = true;
        dueAt = Server.now() + GRACE_MS;
        engine.async.begins(this, dueAt);
      } else {
        end(current != null ? new Failure(Attempt.End.TIMEOUT, "")
            : new Failure(Attempt.End.NO_ROOM, "all connections were in use until the deadline"));
      }
    }
    deliver();
  }

  /** Ends the call because the client was closed. */
  void close() {
    synchronized (this) {
      end(new Failure(Attempt.End.CLOSED, "the client was closed"));
    }
    deliver();
  }

  private void end(Failure how) {
    if (!done && server != null) {
      call.failed(server, how, attemptNs);
    }
    if (!done) {
      finish(null, fault != null ? fault : call.failure("the deadline has passed"));
    }
  }

  private void finish(T answer, FirnException why) {
    done = true;
    if (server != null) {
      engine.fleet.giveBack(server);
    }
    FirnException told = why == null ? null : engine.ofClosed(why);
    engine.tally.ended(told, System.nanoTime() - beganNs);
    delivery = told != null ? () -> future.completeExceptionally(told) : () -> future.complete(result.apply(answer));
  }

  /** Completes the future without a lock, because that runs the program's own code. */
  private void deliver() {
    Runnable now;
    long due;
    synchronized (this) {
      now = delivery;
      delivery = null;
      due = dueAt;
    }
    if (now != null) {
      engine.async.complete(this, due, now);
    }
  }
}
