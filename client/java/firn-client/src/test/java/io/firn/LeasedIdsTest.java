package io.firn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.firn.LeaseWire.Terms;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class LeasedIdsTest {
  static final long EPOCH_MS = 1_704_067_200_000L;
  static final long NOW = FakeClock.START_MS - EPOCH_MS; // as a tick

  private final FakeClock clock = new FakeClock();
  private final LeasedIds ids = new LeasedIds(clock);

  static Terms terms(int machine, long from, long until) {
    Terms terms = new Terms();
    terms.lease = "secret-" + machine;
    terms.machine = machine;
    terms.baseBits = (long) machine << 12;
    terms.tickShift = 22;
    terms.sequenceBits = 12;
    terms.sequenceCount = 4096;
    terms.tickMs = 1;
    terms.epochMs = EPOCH_MS;
    terms.fromTick = from;
    terms.untilTick = until;
    terms.renewInMs = (int) ((until - from) / 3);
    terms.server = "10.0.0." + machine + ":7609";
    return terms;
  }

  static long tickOf(long id) {
    return id >>> 22;
  }

  private static String failureOf(LeasedIds ids, FirnException.Kind kind) {
    FirnException failure = assertThrows(FirnException.class, ids::next);
    assertEquals(kind, failure.kind());
    return failure.getMessage();
  }

  @Test
  void id_contains_tick_machine_and_sequence() throws Exception {
    Terms terms = terms(564, NOW, NOW + 1000);
    terms.sequenceFrom = 100;
    terms.sequenceCount = 10;
    assertNull(terms.fault());
    assertNull(ids.adopt(terms));
    for (int i = 0; i < 25; i++) {
      long id = ids.next();
      assertEquals(564, id >> 12 & 0x3ff);
      assertTrue((id & 0xfff) >= 100 && (id & 0xfff) < 110, "sequence " + (id & 0xfff));
      assertEquals(NOW + i / 10, tickOf(id));
    }
  }

  @Test
  void ids_ascend_and_wait_when_the_sequence_is_used_up() throws Exception {
    ids.adopt(terms(1, NOW, NOW + 1000));
    long before = 0;
    for (int i = 0; i < 3 * 4096 + 1; i++) {
      long id = ids.next();
      assertTrue(id > before);
      before = id;
    }
    assertEquals(NOW + 3, tickOf(before));
    assertEquals(FakeClock.START_MS + 3, clock.wallMs());
  }

  @Test
  void sequence_begins_at_random_unless_the_tick_before_was_used_up() throws Exception {
    ids.adopt(terms(1, NOW, NOW + 1000));
    Set<Long> starts = new HashSet<>();
    for (int i = 0; i < 100; i++) {
      starts.add(ids.next() & 0xfff);
      clock.passMs(1);
    }
    assertTrue(starts.size() > 50);
    assertTrue(starts.stream().allMatch(one -> one < 2048));
  }

  @Test
  void interval_that_ends_stops_the_ids_and_a_later_end_continues_them() throws Exception {
    ids.adopt(terms(7, NOW, NOW + 1000));
    clock.passMs(999);
    ids.extend("secret-7", NOW + 500); // an earlier end is ignored
    assertEquals(NOW + 999, tickOf(ids.next()));
    clock.passMs(1);
    ids.explain("10.0.0.1:7609: timeout");
    String message = failureOf(ids, FirnException.Kind.NO_LEASE);
    assertTrue(message.contains("machine id 7 ended at 2026-11-25"), message);
    assertTrue(message.contains("10.0.0.1:7609: timeout"), message);
    ids.extend("secret-7", NOW + 2000);
    assertEquals(NOW + 1000, tickOf(ids.next()));
  }

  @Test
  void last_sequence_of_the_interval_is_not_followed_by_a_tick_beyond_it() throws Exception {
    ids.adopt(terms(1, NOW, NOW + 1));
    for (int i = 0; i < 4096; i++) {
      assertEquals(NOW, tickOf(ids.next()));
    }
    failureOf(ids, FirnException.Kind.NO_LEASE);
    ids.close("");
    assertEquals(NOW, ids.lastTick());
  }

  @Test
  void without_a_lease_calls_say_why_and_since_when() {
    ids.explain("10.0.0.1:7609: NO_LEASES");
    String message = failureOf(ids, FirnException.Kind.NO_LEASE);
    assertTrue(message.contains("since 2026-11-25") && message.contains("NO_LEASES"), message);
  }

  @Test
  void ids_ahead_of_the_wall_clock_run_at_nine_tenths_of_its_pace() throws Exception {
    ids.adopt(terms(1, NOW, NOW + 60_000));
    ids.next();
    clock.stepWall(-3_000);
    ids.advance();
    clock.passMs(1_000);
    assertEquals(NOW + 900, tickOf(ids.next())); // without a new reading of the wall clock
    for (int i = 0; i < 100; i++) {
      clock.passMs(100);
      ids.advance();
    }
    assertEquals(NOW + 9_900, tickOf(ids.next()));
    clock.passMs(40_000); // in which the difference has vanished
    assertEquals(NOW + 48_000, tickOf(ids.next()));
    ids.advance();
    assertEquals(clock.wallMs() - EPOCH_MS, tickOf(ids.next()));
  }

  @Test
  void extension_of_another_lease_is_ignored() {
    ids.adopt(terms(1, NOW, NOW + 1_000));
    ids.extend("secret-2", NOW + 60_000);
    clock.passMs(1_000);
    failureOf(ids, FirnException.Kind.NO_LEASE);
  }

  @Test
  void lease_of_another_layout_is_not_adopted_also_after_a_loss() throws Exception {
    ids.adopt(terms(1, NOW, NOW + 60_000));
    List<Consumer<Terms>> changes = List.of(one -> one.epochMs++, one -> one.tickMs = 10, one -> one.tickShift++,
        one -> one.sequenceBits = 11);
    for (boolean lost : new boolean[] {false, true}) {
      for (Consumer<Terms> change : changes) {
        Terms other = terms(2, NOW, NOW + 1000);
        other.sequenceCount = 2048;
        change.accept(other);
        assertNull(other.fault());
        String why = ids.adopt(other);
        assertTrue(why != null && why.contains("layout"), why);
      }
      ids.close("revoked");
    }
    assertNull(ids.adopt(terms(2, NOW, NOW + 60_000)));
    assertEquals(2, ids.next() >> 12 & 0x3ff);
  }

  @Test
  void pause_beyond_the_end_issues_no_tick_beyond_it() {
    ids.adopt(terms(1, NOW, NOW + 1000));
    assertTrue(ids.interval().isPresent());
    clock.passMs(3_600_000);
    assertTrue(ids.interval().isEmpty());
    failureOf(ids, FirnException.Kind.NO_LEASE);
    ids.close("");
    assertEquals(NOW - 1, ids.lastTick()); // a refused tick is not used
  }

  /** The thread has read its clock and computes an id; meanwhile the lease is replaced. */
  @Test
  void id_computed_before_its_lease_was_closed_is_not_returned() throws Exception {
    ids.adopt(terms(1, NOW, NOW + 1000));
    long first = ids.next();
    clock.interruptOnce(() -> {
      clock.passMs(20_000);
      ids.close("revoked");
      assertEquals(tickOf(first), ids.lastTick());
      ids.adopt(terms(2, NOW + 20_000, NOW + 30_000));
    });
    long id = ids.next();
    assertEquals(2, id >> 12 & 0x3ff);
    assertTrue(tickOf(id) >= NOW + 20_000);
  }

  @Test
  void generator_closed_during_a_call_returns_no_id() throws Exception {
    ids.adopt(terms(1, NOW, NOW + 1000));
    ids.next();
    clock.interruptOnce(ids::stop);
    failureOf(ids, FirnException.Kind.CLOSED);
    assertEquals(NOW, ids.lastTick());
    assertEquals("the generator was closed", ids.adopt(terms(2, NOW, NOW + 1000)));
    failureOf(ids, FirnException.Kind.CLOSED);
  }

  @Test
  void interrupted_thread_does_not_wait() throws Exception {
    ids.adopt(terms(1, NOW, NOW + 1000));
    for (int i = 0; i < 4096; i++) {
      ids.next();
    }
    Thread.currentThread().interrupt();
    String message = failureOf(ids, FirnException.Kind.UNAVAILABLE);
    assertTrue(Thread.interrupted());
    assertTrue(message.contains("interrupted"), message);
  }

  /** Four threads take ids while leases replace each other: no call fails, no id comes twice, and no tick lies outside
   * of the lease of its machine id. */
  @Test
  void replaced_leases_fail_no_call_of_any_thread() throws Exception {
    LeasedIds real = new LeasedIds(LeasedIds.SYSTEM);
    long now = System.currentTimeMillis() - EPOCH_MS;
    real.adopt(terms(0, now, now + 60_000));
    Set<Long> all = ConcurrentHashMap.newKeySet();
    ExecutorService threads = Executors.newFixedThreadPool(4);
    List<Future<?>> takers = IntStream.range(0, 4).mapToObj(one -> threads.submit(() -> {
      long before = 0;
      for (int i = 0; i < 20_000; i++) {
        long id = real.next();
        assertTrue(id >>> 22 >= before >>> 22);
        assertTrue(all.add(id));
        before = id;
      }
      return null;
    })).collect(Collectors.toList());
    long last = now;
    for (int machine = 1; !takers.stream().allMatch(Future::isDone); machine++) {
      real.adopt(terms(machine % 1000, now, now + 60_000));
      assertTrue(real.lastTick() >= last - 1);
      last = real.lastTick();
      Thread.sleep(1);
    }
    for (Future<?> taker : takers) {
      taker.get();
    }
    threads.shutdown();
    assertTrue(threads.awaitTermination(10, TimeUnit.SECONDS));
    assertEquals(80_000, all.size());
  }

  @Test
  void terms_under_which_no_id_may_be_issued_have_a_fault() {
    assertNull(terms(1023, NOW, NOW + 1).fault());
    List<Consumer<Terms>> faults = List.of(
        one -> one.lease = "", one -> one.lease = "x".repeat(2000), one -> one.machine = -1,
        one -> one.fromTick = -1, one -> one.untilTick = one.fromTick, one -> one.untilTick = Long.MAX_VALUE,
        one -> one.untilTick = (1L << 41) + 1, one -> one.tickMs = 0, one -> one.tickMs = Integer.MAX_VALUE,
        one -> one.epochMs = -1, one -> one.epochMs = Long.MAX_VALUE, one -> one.baseBits |= 1,
        one -> one.baseBits |= 1L << 30, one -> one.tickShift = 11, one -> one.tickShift = 63,
        one -> one.tickShift = -1, one -> one.sequenceShift = 52, one -> one.sequenceShift = 22,
        one -> one.sequenceShift = -1, one -> one.sequenceBits = -1, one -> one.sequenceBits = 64,
        one -> one.sequenceCount = 0, one -> one.sequenceCount = 4097, one -> one.sequenceFrom = 1,
        one -> one.sequenceFrom = -1, one -> one.sequenceFrom = Long.MAX_VALUE);
    for (int i = 0; i < faults.size(); i++) {
      Terms terms = terms(1, NOW, NOW + 1000);
      faults.get(i).accept(terms);
      assertTrue(terms.fault() != null, "fault " + i);
    }
  }
}
