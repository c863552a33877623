package io.firn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.firn.Lessee.Outcome;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class LocalGeneratorTest {
  private static Outcome outcome(LeaseWire.Fault fault) {
    LeaseWire.Refusal refusal = new LeaseWire.Refusal();
    refusal.fault = fault.ordinal() + 1;
    refusal.message = "why";
    refusal.server = "10.0.0.9:7609";
    return LocalGenerator.outcomeOf(Failure.ofLease(refusal));
  }

  private static Outcome outcome(Reason reason) {
    return LocalGenerator.outcomeOf(new Failure(Attempt.End.REFUSED, "why", reason, 700, true, false));
  }

  private static Outcome outcome(Attempt.End end) {
    return LocalGenerator.outcomeOf(new Failure(end, ""));
  }

  @Test
  void each_refusal_and_failure_has_its_outcome() {
    assertEquals(Outcome.Kind.UNKNOWN_LEASE, outcome(LeaseWire.Fault.UNKNOWN_LEASE).kind);
    assertEquals(Outcome.Kind.OUTDATED, outcome(LeaseWire.Fault.OUTDATED).kind);
    assertEquals(Outcome.Kind.REVOKED, outcome(LeaseWire.Fault.REVOKED).kind);
    assertEquals(Outcome.Kind.NO_LEASES, outcome(LeaseWire.Fault.NO_LEASES).kind);
    assertEquals("10.0.0.9:7609", outcome(LeaseWire.Fault.ANOTHER_SERVERS).server);
    assertEquals(LeaseWire.Fault.NO_LEASES, LeaseWire.Fault.of(99)); // of a newer server

    assertEquals(Outcome.Kind.REFUSED, outcome(Reason.BAD_REQUEST).kind);
    assertEquals(Outcome.Kind.REFUSED, outcome(Reason.REJECTED).kind);
    assertEquals(Outcome.Kind.LATER, outcome(Reason.NOT_READY).kind);
    assertEquals(700, outcome(Reason.NOT_READY).retryMs);
    assertEquals(Outcome.Kind.CLAIMING, LocalGenerator.outcomeOf(
        new Failure(Attempt.End.REFUSED, "why", Reason.NOT_READY, 700, false, false)).kind);
    assertEquals(Outcome.Kind.NO_LEASES, LocalGenerator.outcomeOf(Failure.lackingMethod("lease")).kind);

    assertEquals(Outcome.Kind.UNSENT, outcome(Attempt.End.UNREACHABLE).kind);
    assertEquals(Outcome.Kind.UNSENT, outcome(Attempt.End.CONNECT_TIMEOUT).kind);
    assertEquals(Outcome.Kind.NO_ANSWER, outcome(Attempt.End.TIMEOUT).kind);
    assertEquals(Outcome.Kind.NO_ANSWER, outcome(Attempt.End.CLOSED).kind);
    assertEquals("timeout", outcome(Attempt.End.TIMEOUT).message);
  }

  @Test
  void opening_without_a_lease_fails_with_the_reason() throws Exception {
    FakeServer server = new FakeServer(); // grants none
    try (FirnClient client = new FirnClient(new Options("list://" + server.address()))) {
      LocalGenerator.Builder generator = client.localGenerator("a");
      FirnException failure = assertThrows(FirnException.class, () -> generator.open(Duration.ofSeconds(5)));
      assertTrue(failure.getMessage().contains("within 5.0 s: " + server.address()), failure.getMessage());
      server.close();
      failure = assertThrows(FirnException.class, () -> generator.open(Duration.ofMillis(300)));
      assertEquals(FirnException.Kind.NO_LEASE, failure.kind());
    }
  }

  /** The listener is closed, so a renewal that opened a connection would fail. */
  @Test
  void renewals_keep_their_connection() throws Exception {
    FakeServer server = new FakeServer();
    server.leaseMs = 15_000;
    try (FirnClient client = new FirnClient(new Options("list://" + server.address()));
        LocalGenerator generator = client.localGenerator("a").open()) {
      awaitRenewal(generator);
      server.close();
      awaitRenewal(generator);
      awaitRenewal(generator);
      generator.next();
      assertEquals(1, client.counters().connects);
    }
  }

  @Test
  void renewal_replaces_a_connection_that_the_server_has_closed() throws Exception {
    FakeServer server = new FakeServer();
    server.leaseMs = 15_000;
    try (FirnClient client = new FirnClient(new Options("list://" + server.address()));
        LocalGenerator generator = client.localGenerator("a").open()) {
      for (int i = 0; i < 3; i++) {
        awaitRenewal(generator);
        server.reset();
      }
      awaitRenewal(generator);
      assertEquals("no server has answered yet", generator.ids.reason(), "the last failure of a request");
      assertEquals(4, client.counters().connects);
    } finally {
      server.close();
    }
  }

  /** Without a reset, only a timeout shows that the path is dead. */
  @Test
  void renewal_replaces_a_connection_that_gets_no_answer() throws Exception {
    FakeServer server = new FakeServer();
    server.leaseMs = 15_000;
    try (FirnClient client = new FirnClient(new Options("list://" + server.address()));
        LocalGenerator generator = client.localGenerator("a").open()) {
      awaitRenewal(generator);
      server.mute();
      awaitRenewal(generator);
      assertEquals("no server has answered yet", generator.ids.reason(), "the last failure of a request");
      assertEquals(2, client.counters().connects);
    } finally {
      server.close();
    }
  }

  /** Returns when the generator has taken the answer. */
  private static void awaitRenewal(LocalGenerator generator) throws InterruptedException {
    Instant before = generator.until().get();
    for (long end = System.nanoTime() + 60_000_000_000L; !generator.until().get().isAfter(before); Thread.sleep(5)) {
      assertTrue(System.nanoTime() < end, "no renewal");
    }
  }

  @Test
  @Timeout(60)
  void queued_hooks_run_after_the_client_is_closed() throws Exception {
    CountDownLatch release = new CountDownLatch(1);
    BlockingQueue<String> kinds = new LinkedBlockingQueue<>();
    Fleet fleet;
    try (FirnClient client = new FirnClient(new Options("list://127.0.0.1:1").onEvent(event -> {
      try {
        release.await();
      } catch (InterruptedException end) {
        Thread.currentThread().interrupt();
      }
      kinds.add(event.kind);
    }))) {
      fleet = client.engine.fleet;
      fleet.tell("first", "", "");
      fleet.tell("second", "", "");
    }
    fleet.tell("after the end", "", "");
    release.countDown();
    assertEquals("first", kinds.take());
    assertEquals("second", kinds.take());
    Thread.sleep(50);
    assertTrue(kinds.isEmpty());
  }

  @Test
  @Timeout(60)
  void loss_is_not_reported_after_the_generator_is_closed() throws Exception {
    CountDownLatch release = new CountDownLatch(1);
    CompletableFuture<String> ended = new CompletableFuture<>();
    FakeServer server = new FakeServer();
    server.leaseMs = 15_000;
    List<LeaseLoss> losses = new CopyOnWriteArrayList<>();
    try (FirnClient client = new FirnClient(new Options("list://" + server.address()))) {
      LocalGenerator generator = client.localGenerator("a").onLost(losses::add).open();
      generator.hooks.call(() -> {
        try {
          release.await();
        } catch (InterruptedException end) {
          Thread.currentThread().interrupt();
        }
      });
      generator.lessee.onLost.accept(new LeaseLoss(LeaseLoss.Kind.REVOKED, 1, ""));
      generator.close();
      generator.hooks.call(() -> ended.complete(""));
      release.countDown();
      ended.get();
      assertEquals(List.of(), losses);
    } finally {
      server.close();
    }
  }

  @Test
  void connection_for_a_lease_ends_a_row_of_failures_but_no_quarantine() throws Exception {
    FakeServer server = new FakeServer();
    try (FirnClient client = new FirnClient(new Options("list://" + server.address() + ",127.0.0.1:1"))) {
      Fleet fleet = client.engine.fleet;
      for (int failures = 0; failures < 3; failures++) {
        fleet.failed(fleet.at(server.address()), "order", new Failure(Attempt.End.CLOSED, ""));
        connectForLease(client, server);
      }
      assertTrue(client.servers().stream().allMatch(one -> one.health.equals("healthy")));
      fleet.failed(fleet.at(server.address()), "order", new Failure(Attempt.End.BROKEN, ""));
      connectForLease(client, server);
      assertTrue(client.servers().stream().anyMatch(one -> one.health.equals("quarantined")));
    } finally {
      server.close();
    }
  }

  private static void connectForLease(FirnClient client, FakeServer server) throws Failure {
    client.engine.drop(client.engine.connectForLease(server.address(), System.nanoTime() + 30_000_000_000L));
  }

  /** The hook waits for another thread, which a lock of the call would block. */
  @Test
  @Timeout(60)
  void hook_can_wait_for_another_thread_that_closes_the_client() throws Exception {
    FakeServer server = new FakeServer();
    server.mayAnswer = new CountDownLatch(1);
    CompletableFuture<Boolean> closed = new CompletableFuture<>();
    FirnClient[] client = new FirnClient[1];
    Options options = new Options("list://" + server.address()).deadlineMs(5_000).attemptLimitMs(100);
    client[0] = new FirnClient(options.onEvent(event -> {
      Thread closing = new Thread(client[0]::close);
      closing.start();
      try {
        closing.join(10_000);
      } catch (InterruptedException end) {
        Thread.currentThread().interrupt();
      }
      closed.complete(!closing.isAlive());
    }));
    for (int failures = 0; failures < 3; failures++) {
      client[0].nextIdAsync("order");
      Thread.sleep(300); // until the attempt has timed out
    }
    assertTrue(closed.get());
    server.close();
  }

  @Test
  void hooks_delay_no_renewal() throws Exception {
    CompletableFuture<String> thread = new CompletableFuture<>();
    Options options = new Options("list://127.0.0.1:1").onEvent(
        event -> thread.complete(Thread.currentThread().getName()));
    try (FirnClient client = new FirnClient(options)) {
      assertThrows(FirnException.class, () -> client.localGenerator("a").open(Duration.ofSeconds(2)));
      assertEquals("firn-hooks", thread.get(30, TimeUnit.SECONDS)); // and not firn-lease
    }
  }

  /** A defect of the client, which the program's handler of uncaught exceptions cannot handle. */
  @Test
  void error_does_not_end_the_thread_of_a_generator() throws Exception {
    BlockingQueue<Thread> faulty = new LinkedBlockingQueue<>();
    Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
    Thread.setDefaultUncaughtExceptionHandler((thread, fault) -> {
      if (thread.getName().equals("firn-lease")) {
        faulty.add(thread);
      }
      throw new OutOfMemoryError("as the test says");
    });
    try (FirnClient client = new FirnClient(new Options("list://127.0.0.1:1"))) {
      client.engine.fleet.at("127.0.0.1:1").addresses = null;
      CompletableFuture<FirnException> opening = CompletableFuture.supplyAsync(() -> assertThrows(FirnException.class,
          () -> client.localGenerator("a").open(Duration.ofDays(1))));
      assertNotNull(faulty.poll(30, TimeUnit.SECONDS));
      client.close(); // which the thread tells
      opening.get(30, TimeUnit.SECONDS);
    } finally {
      Thread.setDefaultUncaughtExceptionHandler(before);
    }
  }

  @Test
  void opening_fails_at_once_when_the_client_is_closed() {
    FirnClient client = new FirnClient(new Options("list://127.0.0.1:1"));
    client.close();
    FirnException failure = assertThrows(FirnException.class,
        () -> client.localGenerator("a").open(Duration.ofDays(1)));
    assertTrue(failure.getMessage().contains("client was closed"), failure.getMessage());
  }

  @Test
  void options_that_no_server_accepts_are_refused() {
    try (FirnClient client = new FirnClient(new Options("list://127.0.0.1:1"))) {
      for (String name : List.of("", "ü", "a b", "a\n", "a".repeat(65))) {
        assertThrows(IllegalArgumentException.class, () -> client.localGenerator(name).open(), name);
      }
      for (long ms : new long[] {0, 1_999, 86_400_001}) {
        LocalGenerator.Builder generator = client.localGenerator("a.b:c/d@e_f-9").ahead(Duration.ofMillis(ms));
        assertThrows(IllegalArgumentException.class, generator::open, ms + " ms");
      }
    }
  }
}
