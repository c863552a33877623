package io.firn;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class SupplyTest {
  private static final int THREADS = 8;
  private static final int EACH = 20_000;

  private FakeServer server;
  private FirnClient client;

  @BeforeEach
  void start() throws Exception {
    server = new FakeServer();
  }

  @AfterEach
  void stop() {
    if (client != null) {
      client.close();
    }
    server.close();
  }

  private void open(LocalTag tag) {
    client = new FirnClient(new Options("list://" + server.address()).deadlineMs(20_000).attemptLimitMs(10_000)
        .localRanges(List.of(tag)));
  }

  @Test
  void gives_each_id_once_to_many_threads() throws Exception {
    open(LocalTag.segment("count"));
    ExecutorService pool = Executors.newFixedThreadPool(THREADS);
    List<Future<List<Long>>> ends = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      boolean many = i % 2 == 0;
      ends.add(pool.submit(() -> {
        List<Long> got = new ArrayList<>();
        while (got.size() < EACH) {
          if (many) {
            got.addAll(client.nextIds("count", 1 + got.size() % 300));
          } else {
            got.add(client.nextId("count"));
          }
        }
        return got;
      }));
    }
    Set<Long> different = new HashSet<>();
    int all = 0;
    for (Future<List<Long>> end : ends) {
      different.addAll(end.get());
      all += end.get().size();
    }
    pool.shutdown();
    assertEquals(all, different.size());
    assertTrue(client.counters().localTaken > EACH, "ids came from memory");
  }

  @Test
  void fetches_again_after_no_thread_could_be_started() throws Exception {
    open(LocalTag.segment("count"));
    FakeServer.withoutThreads(client, () -> assertDoesNotThrow(() -> client.nextId("count")));
    for (long end = System.nanoTime() + 20_000_000_000L; client.counters().localTaken == 0; client.nextId("count")) {
      assertTrue(System.nanoTime() < end, "ids are not fetched");
    }
  }

  @Test
  void many_ids_from_memory_ascend() throws Exception {
    open(LocalTag.segment("count"));
    for (int i = 0; i < 500; i++) {
      client.nextId("count");
      List<Long> ids = client.nextIds("count", 50);
      assertEquals(50, ids.size());
      for (int at = 1; at < ids.size(); at++) {
        assertTrue(ids.get(at) > ids.get(at - 1));
      }
    }
  }

  @Test
  void drops_ids_that_are_too_old() throws Exception {
    open(LocalTag.snowflake("event"));
    long before = client.nextId("event");
    long fetchedBefore = server.lastIssued();
    long until = System.nanoTime() + 10_000_000_000L;
    long id = before;
    while (id <= fetchedBefore && System.nanoTime() < until) {
      Thread.sleep(300); // slower than the ids in memory age
      id = client.nextId("event");
    }
    assertTrue(id > fetchedBefore, "an id of a later fetch");
  }

  /** Only the timer drops the ids of a thread's piece: the thread takes them without looking at the clock. */
  @Test
  void drops_the_piece_of_a_thread_by_age() throws Exception {
    open(LocalTag.snowflake("event"));
    client.nextId("event"); // of a piece of four
    long fetchedBefore = server.lastIssued();
    long id = 0;
    for (int i = 0; i < 2 && id <= fetchedBefore; i++) { // the second time for a timer that was late
      Thread.sleep(2000);
      id = client.nextId("event");
    }
    assertTrue(id > fetchedBefore, "an id of a later fetch");
  }

  @Test
  void gives_no_id_after_the_end() throws Exception {
    open(LocalTag.segment("count"));
    client.nextId("count");
    client.close();
    FirnException failure = null;
    try {
      client.nextId("count");
    } catch (FirnException thrown) {
      failure = thrown;
    }
    assertEquals(FirnException.Kind.CLOSED, failure.kind());
  }

  @Test
  void piece_fills_an_array_or_leaves_its_ids() {
    Supply.Piece piece = new Supply.Piece(null, 100, 10, 5);
    assertFalse(piece.fill(new long[6]));
    long[] ids = new long[3];
    assertTrue(piece.fill(ids));
    assertEquals("[100, 110, 120]", Arrays.toString(ids));
    assertEquals(2, piece.take(ids, 0));
    assertEquals("[130, 140, 120]", Arrays.toString(ids));
    assertEquals(0, piece.take());
    assertEquals(0, piece.take(ids, 0));
  }

  @Test
  void piece_is_cut_from_the_front_of_a_run() {
    Wire.Run run = new Wire.Run();
    run.first = Long.MAX_VALUE - 20;
    run.stride = 10;
    run.count = 3;
    Supply.Piece piece = Supply.Piece.cut(null, run, 2);
    assertEquals(2, piece.size());
    assertEquals(Long.MAX_VALUE - 20, piece.take());
    Supply.Piece last = Supply.Piece.cut(null, run, 2);
    assertEquals(1, last.size());
    assertEquals(Long.MAX_VALUE, last.take());
    assertEquals(0, run.count);
  }

  @Test
  void finds_duplicates_in_any_order() {
    assertNull(fault(30, 10, 20));
    assertEquals("its answer contains an id twice", fault(30, 10, 30));
  }

  private static String fault(long... ids) {
    IdCheck any = new IdCheck("a newer layout", Set.of(), 0);
    return Ask.ids("order", (int) LongStream.of(ids).count()).faultOf(ids, any);
  }
}
