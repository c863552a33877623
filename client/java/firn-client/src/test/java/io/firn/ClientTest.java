package io.firn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.firn.micrometer.FirnMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class ClientTest {
  private FakeServer server;

  @BeforeEach
  void start() throws Exception {
    server = new FakeServer();
  }

  @AfterEach
  void stop() {
    server.close();
  }

  private Options options() {
    return new Options("list://" + server.address()).deadlineMs(20_000).attemptLimitMs(10_000);
  }

  private static FirnException failureOf(CompletableFuture<?> call) {
    return (FirnException) assertThrows(ExecutionException.class, call::get).getCause();
  }

  @Test
  void asynchronous_calls_complete_with_ids() throws Exception {
    try (FirnClient client = new FirnClient(options())) {
      List<CompletableFuture<Long>> calls = new ArrayList<>();
      for (int i = 0; i < 5_000; i++) { // more than the connections have room for
        calls.add(client.nextIdAsync("order"));
      }
      assertEquals(5_000, calls.stream().map(CompletableFuture::join).distinct().count());
      assertEquals(100, client.nextIdsAsync("order", 100).get().size());
      assertTrue(client.nextTextAsync("order").get().startsWith("N-"));
    }
  }

  @Test
  void asynchronous_calls_share_one_connection() throws Exception {
    CountDownLatch held = new CountDownLatch(1);
    server.mayAnswer = held;
    try (FirnClient client = new FirnClient(options())) {
      List<CompletableFuture<Long>> calls = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        calls.add(client.nextIdAsync("order"));
      }
      while (!server.holds) {
        Thread.sleep(1);
      }
      calls.add(client.nextIdAsync("order"));
      held.countDown();
      assertEquals(101, calls.stream().map(CompletableFuture::join).distinct().count());
      assertEquals(1, client.counters().connects);
    }
  }

  @Test
  void asynchronous_calls_do_not_wait_behind_a_slow_answer() throws Exception {
    CountDownLatch held = new CountDownLatch(1);
    server.mayAnswer = held;
    try (FirnClient client = new FirnClient(options().attemptLimitMs(8_000))) {
      List<CompletableFuture<Long>> calls = new ArrayList<>();
      calls.add(client.nextIdAsync("order"));
      while (!server.holds) {
        Thread.sleep(1);
      }
      server.mayAnswer = new CountDownLatch(0); // for the connections that follow
      while (!calls.get(calls.size() - 1).isDone()) {
        calls.add(client.nextIdAsync("order"));
        Thread.sleep(5);
      }
      assertFalse(calls.get(0).isDone());
      assertEquals(2, client.counters().connects);
      held.countDown();
      assertEquals(calls.size(), calls.stream().map(CompletableFuture::join).distinct().count());
    }
  }

  @Test
  void queued_asynchronous_call_ends_at_its_deadline() throws Exception {
    server.mayAnswer = new CountDownLatch(1);
    try (FirnClient client = new FirnClient(options().connectionsMax(1))) {
      for (int i = 0; i < Pipeline.IN_FLIGHT_MAX; i++) {
        client.nextIdAsync("order");
      }
      FirnException failure = failureOf(client.nextIdAsync("order", 500));
      assertEquals(FirnException.Kind.UNAVAILABLE, failure.kind());
      assertEquals(Attempt.End.NO_ROOM, failure.attempts().get(0).end);
    }
  }

  @Test
  void asynchronous_call_that_fails_lists_its_attempts() throws Exception {
    server.mayAnswer = new CountDownLatch(1);
    try (FirnClient client = new FirnClient(options())) {
      FirnException failure = failureOf(client.nextIdAsync("order", 300));
      assertEquals(Attempt.End.TIMEOUT, failure.attempts().get(0).end);
    }
  }

  @Test
  void asynchronous_calls_on_a_connection_that_was_reset_use_a_new_one() throws Exception {
    try (FirnClient client = new FirnClient(options().connectionsMax(1))) {
      client.nextIdAsync("order").get();
      CountDownLatch held = new CountDownLatch(1);
      server.mayAnswer = held;
      List<CompletableFuture<Long>> calls = new ArrayList<>();
      for (int i = 0; i < 5; i++) {
        calls.add(client.nextIdAsync("order"));
      }
      while (!server.holds) {
        Thread.sleep(1);
      }
      server.mayAnswer = new CountDownLatch(0);
      server.reset();
      assertEquals(5, calls.stream().map(CompletableFuture::join).distinct().count());
      assertTrue(client.servers().get(0).toString().startsWith(server.address() + " healthy "));
      held.countDown();
    }
  }

  @Test
  @Timeout(60)
  void hung_server_does_not_use_up_the_retry_budget() throws Exception {
    try (FakeServer healthy = new FakeServer();
        FirnClient client = new FirnClient(new Options("list://" + server.address() + "," + healthy.address())
            .deadlineMs(60_000).attemptLimitMs(2_000).connectionsMax(1_000))) {
      client.nextId("order");
      for (int i = 0; i < 197; i++) {
        assertTrue(client.engine.fleet.budget.take(0)); // three are left, and 20 more in 2 s
      }
      server.mayAnswer = new CountDownLatch(1);
      healthy.mayAnswer = new CountDownLatch(1); // until all calls have begun, or it would get nearly all of them
      List<CompletableFuture<Long>> calls = new ArrayList<>();
      ExecutorService threads = Executors.newFixedThreadPool(200);
      for (int i = 0; i < 200; i++) {
        calls.add(CompletableFuture.supplyAsync(() -> idOf(client), threads));
      }
      while (client.servers().stream().mapToInt(one -> one.inFlight).sum() + client.counters().timeouts < 200) {
        Thread.sleep(5);
      }
      healthy.mayAnswer.countDown();
      for (CompletableFuture<Long> call : calls) {
        call.get();
      }
      threads.shutdown();
      assertTrue(client.counters().timeouts > 40);
      assertEquals(0, client.counters().retriesDenied);
    }
  }

  private static long idOf(FirnClient client) {
    try {
      return client.nextId("order");
    } catch (FirnException failure) {
      throw new CompletionException(failure);
    }
  }

  @Test
  @Timeout(60)
  void asynchronous_calls_connect_after_no_thread_could_be_started() throws Exception {
    try (FirnClient client = new FirnClient(options())) {
      CompletableFuture<Long> first = new CompletableFuture<>();
      FakeServer.withoutThreads(client, () -> client.nextIdAsync("order").thenAccept(first::complete));
      client.nextIdAsync("order").get();
      first.get();
    }
  }

  @Test
  @Timeout(60)
  void requests_are_written_after_no_thread_could_be_started() throws Exception {
    CountDownLatch held = new CountDownLatch(1);
    server.mayAnswer = held;
    try (FirnClient client = new FirnClient(options())) {
      CompletableFuture<Long> first = client.nextIdAsync("order");
      while (!server.holds) {
        Thread.sleep(1);
      }
      CompletableFuture<Long> second = new CompletableFuture<>();
      FakeServer.withoutThreads(client, () -> client.nextIdAsync("order").thenAccept(second::complete));
      held.countDown();
      first.get();
      second.get();
    }
  }

  @Test
  @Timeout(60)
  void attempts_time_out_after_no_thread_could_be_started() throws Exception {
    server.mayAnswer = new CountDownLatch(1);
    try (FirnClient client = new FirnClient(options().deadlineMs(1_000).attemptLimitMs(200))) {
      CompletableFuture<Long> first = client.nextIdAsync("order");
      while (!server.holds) {
        Thread.sleep(1);
      }
      FakeServer.withoutThreads(client, () -> failureOf(first));
      assertThrows(FirnException.class, () -> client.nextId("order"));
    }
  }

  @Test
  void asynchronous_calls_end_with_the_client() throws Exception {
    server.mayAnswer = new CountDownLatch(1);
    List<CompletableFuture<Long>> calls = new ArrayList<>();
    FirnClient client = new FirnClient(options());
    for (int i = 0; i < 100; i++) {
      calls.add(client.nextIdAsync("order"));
    }
    client.close();
    for (CompletableFuture<Long> call : calls) {
      assertEquals(FirnException.Kind.CLOSED, failureOf(call).kind());
    }
    assertEquals(FirnException.Kind.CLOSED, failureOf(client.nextIdAsync("order")).kind());
  }

  @Test
  void blocked_dependents_of_futures_delay_no_other_call() throws Exception {
    CountDownLatch mayEnd = new CountDownLatch(1);
    try (FirnClient client = new FirnClient(options())) {
      List<CompletableFuture<Void>> blocked = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        blocked.add(client.nextIdAsync("order").thenAccept(id -> awaitQuietly(mayEnd)));
      }
      client.nextIdAsync("order").get();
      mayEnd.countDown();
      blocked.forEach(CompletableFuture::join);
    }
  }

  private static void awaitQuietly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException end) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void asynchronous_calls_wait_for_prefetched_ids() throws Exception {
    try (FirnClient client = new FirnClient(options().localRanges(List.of(LocalTag.segment("count"))))) {
      List<CompletableFuture<Long>> calls = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        calls.add(client.nextIdAsync("count"));
      }
      assertEquals(100, calls.stream().map(CompletableFuture::join).distinct().count());
      assertTrue(client.counters().calls < 100, client.counters().toString());
    }
  }

  @Test
  void asynchronous_calls_use_the_executor_of_the_options() {
    List<String> threads = new ArrayList<>();
    try (FirnClient client = new FirnClient(options().executor(run -> {
      threads.add(Thread.currentThread().getName());
      run.run();
    }))) {
      client.nextIdAsync("order").join();
    }
    assertEquals(1, threads.size());
  }

  @Test
  void full_executor_does_not_stop_the_answers() throws Exception {
    try (FirnClient client = new FirnClient(options().connectionsMax(1).executor(run -> {
      throw new RejectedExecutionException("full");
    }))) {
      List<CompletableFuture<Long>> calls = new ArrayList<>();
      for (int i = 0; i < 2; i++) {
        // The second call's answer arrives on the same connection while the first one's dependent waits for it.
        CountDownLatch begun = new CountDownLatch(1);
        CompletableFuture<Long> nested = client.nextIdAsync("order").thenApply(id -> {
          begun.countDown();
          return client.nextIdAsync("order").join();
        });
        calls.add(nested);
        begun.await();
      }
      for (CompletableFuture<Long> call : calls) {
        call.get(10, TimeUnit.SECONDS);
      }
    }
  }

  @Test
  void meters_count_calls_and_servers() throws Exception {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    try (FirnClient client = new FirnClient(options().localRanges(List.of(LocalTag.segment("count"))))) {
      new FirnMetrics(client).bindTo(registry);
      client.nextId("order");
      client.nextId("count");
      assertThrows(FirnException.class, () -> client.nextIds("order", 0));
      assertEquals(1, registry.get("firn.client.servers").tag("health", "healthy").gauge().value());
      assertTrue(registry.get("firn.client.calls").functionTimer().count() >= 1);
      assertTrue(registry.get("firn.client.connects").functionCounter().count() >= 1);
      assertTrue(registry.get("firn.client.local.ids").functionCounter().count() >= 1);
      assertEquals(0, registry.get("firn.client.calls.failed").functionCounter().count());
    }
  }

  @Test
  void ping_takes_no_id() throws Exception {
    try (FirnClient client = new FirnClient(options())) {
      long before = server.lastIssued();
      client.ping();
      client.ping();
      assertEquals(before, server.lastIssued());
      server.mayAnswer = new CountDownLatch(1);
      client.ping(); // the status needs no id
    }
  }

  @Test
  void client_copies_its_options() throws Exception {
    Options options = options();
    try (FirnClient client = new FirnClient(options)) {
      options.deadlineMs(1).attemptLimit(Duration.ofMillis(1));
      client.nextId("order");
    }
  }

  @Test
  void options_name_every_fault() {
    Options options = new Options("zk://a").deadline(Duration.ZERO).attemptsMax(0);
    String message = assertThrows(IllegalArgumentException.class, () -> new FirnClient(options)).getMessage();
    for (String name : List.of("zk://a", "deadlineMs", "attemptsMax")) {
      assertTrue(message.contains(name), message);
    }
    assertThrows(IllegalArgumentException.class, () -> new FirnClient(new Options(null)));
    Options unix = new Options("list://unix:/run/firn.sock");
    message = assertThrows(IllegalArgumentException.class, () -> new FirnClient(unix)).getMessage();
    assertTrue(message.contains("use the server's host and port"), message);
  }

  @Test
  void events_and_failures_have_no_empty_parts() {
    assertEquals("list: 3 servers", new Event("list", "", "3 servers").toString());
    assertEquals("unhealthy a:1: silent", new Event("unhealthy", "a:1", "silent").toString());
    assertEquals("timeout", new Failure(Attempt.End.TIMEOUT, "").text());
  }

  @Test
  void serialised_exception_keeps_its_attempts() throws Exception {
    Attempt attempt = new Attempt("a:1", Attempt.End.TIMEOUT, null, 80, "");
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    new ObjectOutputStream(bytes).writeObject(
        new FirnException(FirnException.Kind.UNAVAILABLE, "late", null, 5, List.of(attempt)));
    FirnException read = (FirnException) new ObjectInputStream(
        new ByteArrayInputStream(bytes.toByteArray())).readObject();
    assertEquals("a:1", read.attempts().get(0).server);
    assertFalse(read.getMessage().isEmpty());
  }

  @Test
  void counters_and_servers_print_their_values() throws Exception {
    try (FirnClient client = new FirnClient(options())) {
      client.nextId("order");
      assertTrue(client.counters().toString().startsWith("calls=1 "), client.counters().toString());
      assertTrue(client.servers().get(0).toString().startsWith(server.address() + " healthy "), client.servers().toString());
    }
  }
}
