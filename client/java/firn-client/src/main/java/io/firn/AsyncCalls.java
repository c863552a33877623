package io.firn;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;

/** The asynchronous calls in progress. Futures are completed on other threads, at most 64 of its own, so that a program's
 * own code that blocks there delays no other call. */
final class AsyncCalls {
  private static final int THREADS_MAX = 64;

  /** The calls whose time ends in the same millisecond. They share a timer, because a burst is many. */
  private static final class Due {
    final Set<AsyncCall<?>> calls = new HashSet<>();
    ScheduledFuture<?> timer;
  }

  private final Engine engine;
  private final Executor executor;
  private final Map<Long, Due> active = new ConcurrentHashMap<>(); // by the end of their time
  private final Set<Runnable> awaitNews = ConcurrentHashMap.newKeySet();
  private ThreadPoolExecutor own;

  AsyncCalls(Engine engine, Executor given) {
    this.engine = engine;
    if (given == null) {
      own = new ThreadPoolExecutor(THREADS_MAX, THREADS_MAX, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(),
          run -> Engine.daemon(run, "firn-call"));
      own.allowCoreThreadTimeOut(true);
    }
    executor = given == null ? own : given;
  }

  <T, R> CompletableFuture<R> start(Ask<T> ask, long deadlineMs, Function<T, R> result) {
    CompletableFuture<R> future = new CompletableFuture<>();
    start(ask, deadlineMs, future, result);
    return future;
  }

  @SuppressWarnings("unchecked") // the result has the future's type
  private <T, R> void start(Ask<T> ask, long deadlineMs, CompletableFuture<R> future, Function<T, R> result) {
    AsyncCall<T> call = new AsyncCall<>(engine, ask, deadlineMs, (CompletableFuture<Object>) future, result);
    call.start();
    if (engine.fleet.stopped()) {
      call.close();
    }
  }

  /** Returns an id of a prefetched tag, after waiting for a quarter of the time for a fetch in progress. */
  CompletableFuture<Long> startLocal(Supply supply, Ask<Long> ask, long deadlineMs) {
    CompletableFuture<Long> future = new CompletableFuture<>();
    long began = Server.now();
    Runnable attempt = new Runnable() {
      @Override
      public void run() {
        long left = deadlineMs - (Server.now() - began);
        long id = supply.take(0);
        if (id != 0) {
          execute(() -> future.complete(id));
        } else if (left <= deadlineMs - deadlineMs / 4 || !supply.onFetched(once(this, left - deadlineMs * 3 / 4))) {
          start(ask, left, future, Function.identity());
        }
      }
    };
    attempt.run();
    return future;
  }

  /** Returns a task that runs the given one when it is first run, or after that time. */
  private Runnable once(Runnable run, long ms) {
    java.util.concurrent.atomic.AtomicBoolean ran = new java.util.concurrent.atomic.AtomicBoolean();
    Runnable first = () -> {
      if (ran.compareAndSet(false, true)) {
        run.run();
      }
    };
    engine.later(ms, first);
    return first;
  }

  /** Runs the task once or more: at that time, and before when news of servers come if `forNews`. */
  void await(Runnable then, long until, boolean forNews) {
    if (forNews) {
      awaitNews.add(then);
    }
    engine.later(Math.max(0, until - Server.now()), () -> {
      awaitNews.remove(then);
      if (!engine.inBackground(then)) {
        then.run();
      }
    });
  }

  /** Called with locks held. */
  void newsCame() {
    if (!awaitNews.isEmpty()) {
      engine.inBackground(() -> {
        List<Runnable> all = new ArrayList<>(awaitNews);
        awaitNews.removeAll(all);
        all.forEach(Runnable::run);
      });
    }
  }

  /** Calls `over` at that time, unless the call is complete. */
  void begins(AsyncCall<?> call, long at) {
    active.compute(at, (when, known) -> {
      Due due = known == null ? new Due() : known;
      due.calls.add(call);
      if (known == null) {
        due.timer = engine.later(at - Server.now(), () -> end(at, AsyncCall::over));
      }
      return due;
    });
  }

  private void end(long at, Consumer<AsyncCall<?>> how) {
    Due due = active.remove(at);
    if (due != null) {
      due.calls.forEach(how); // which nothing else changes any more
    }
  }

  /** Completes the future of a call that has ended. */
  void complete(AsyncCall<?> call, long at, Runnable completion) {
    active.computeIfPresent(at, (when, due) -> {
      due.calls.remove(call);
      if (due.calls.isEmpty() && due.timer != null) {
        due.timer.cancel(false);
      }
      return due.calls.isEmpty() ? null : due;
    });
    execute(completion);
  }

  /** Runs the program's own code; until the client is closed, not on a thread that reads or keeps time. */
  private void execute(Runnable completion) {
    try {
      executor.execute(completion);
    } catch (RejectedExecutionException | OutOfMemoryError full) {
      if (!engine.inBackground(completion)) {
        completion.run();
      }
    }
  }

  /** Ends the calls in progress. */
  void close() {
    List.copyOf(active.keySet()).forEach(at -> end(at, AsyncCall::close));
    if (own != null) {
      own.shutdown();
    }
  }
}
