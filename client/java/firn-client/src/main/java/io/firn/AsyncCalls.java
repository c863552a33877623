package io.firn;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Runs calls on other threads, at most 64 of its own; further calls wait in line, at most until their deadline. */
final class AsyncCalls {
  /** A call with what is left of its time, in milliseconds. */
  interface Work<T> {
    T run(long leftMs) throws FirnException;
  }

  private static final int THREADS_MAX = 64;

  private final Engine engine;
  private final Executor executor;
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

  <T> CompletableFuture<T> start(Work<T> work, long deadlineMs) {
    CompletableFuture<T> future = new CompletableFuture<>();
    AtomicBoolean begun = new AtomicBoolean(); // a call that has begun ends by its deadline, and lists its attempts
    long until = Server.now() + deadlineMs;
    try {
      ScheduledFuture<?> limit = engine.later(deadlineMs, () -> {
        if (begun.compareAndSet(false, true)) {
          future.completeExceptionally(failure(FirnException.Kind.UNAVAILABLE,
              "the deadline has passed before a thread was free"));
        }
      });
      executor.execute(() -> {
        limit.cancel(false);
        if (begun.compareAndSet(false, true) && !future.isDone()) {
          run(work, until, future);
        }
      });
    } catch (RejectedExecutionException rejected) {
      future.completeExceptionally(engine.fleet.stopped()
          ? failure(FirnException.Kind.CLOSED, "the client was closed")
          : failure(FirnException.Kind.UNAVAILABLE, "the executor of the options accepts no more calls"));
    }
    return future;
  }

  private static <T> void run(Work<T> work, long until, CompletableFuture<T> future) {
    try {
      future.complete(work.run(Math.max(0, until - Server.now())));
    } catch (FirnException | RuntimeException | Error fault) {
      future.completeExceptionally(fault);
    }
  }

  /** Lets the calls in progress end, which they do at once because the client is closed. */
  void close() {
    if (own != null) {
      own.shutdown();
    }
  }

  private static FirnException failure(FirnException.Kind kind, String sentence) {
    return new FirnException(kind, sentence, null, 0, List.of());
  }
}
