package io.firn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.firn.LeaseWire.Terms;
import io.firn.Lessee.Kind;
import io.firn.Lessee.Outcome;
import io.firn.Lessee.Request;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Plays the tables of lessees that the generators of all languages share, and tests what only this one has. */
class LesseeTest {
  private static final String A = "10.0.0.1:7609";
  private static final String B = "10.0.0.2:7609";

  private final LeasePlayer player = new LeasePlayer();

  @TestFactory
  Stream<DynamicTest> rule() throws IOException {
    List<DynamicTest> tests = new ArrayList<>();
    for (String name : List.of("lessees.json", "jumps.json")) {
      File table = new File(new File(System.getProperty("firn.frames")).getParent(), name);
      new ObjectMapper().readTree(table).get("cases").forEach(one ->
          tests.add(DynamicTest.dynamicTest(one.get("case").asText(), () -> LeasePlayer.play(one))));
    }
    assertTrue(tests.size() >= 70);
    return tests.stream();
  }

  private static Lessee.Servers listOf(List<String> addresses) {
    return new Lessee.Servers() {
      @Override
      public String pickForLease(Set<String> tried) {
        return addresses.stream().filter(one -> !tried.contains(one)).findFirst().orElse(null);
      }

      @Override
      public boolean lists(String address) {
        return addresses.contains(address);
      }
    };
  }

  @Test
  void slow_servers_get_more_time_in_the_next_round() throws Exception {
    List<String> asked = new ArrayList<>();
    while (asked.size() < 12) {
      player.play("pass 100");
      if (player.unanswered != null) {
        asked.add(player.unanswered.server);
        player.play("answer lost");
      }
    }
    assertEquals(List.of(A, A, B, B), asked.subList(0, 4));
    assertEquals(List.of(B, B, B, B, A, A, A, A), asked.subList(4, 12)); // a token is repeated more often
  }

  @Test
  void reason_says_that_there_is_no_usable_server() throws Exception {
    player.servers.clear();
    player.play("pass 2000", "sent");
    assertTrue(player.ids.reason().contains("no usable server"));
    player.servers.add(B);
    player.play("pass 2000", "sent grant:t1:s2");
  }

  @Test
  void reasons_are_in_failures_and_losses() throws Exception {
    player.play("pass 0", "answer terms:spoilt=overlap");
    String message = assertThrows(FirnException.class, player.ids::next).getMessage();
    assertTrue(message.contains("overlap"), message);
    LeasePlayer leased = new LeasePlayer().play("lease", "pass 20000", "answer refused");
    assertTrue(leased.ids.reason().contains("the program's clock is ahead"), leased.ids.reason());
    leased.play("reply renewal lost", "reply grant lost", "pass 40100", "next ended");
    assertTrue(leased.losses.get(0).reason.contains("machine id 7 ended at "), leased.losses.get(0).reason);
    leased.play("reply grant terms", "reply release released", "pass 3000", "loss expired", "reply renewal revoked", "pass 20000");
    assertTrue(leased.losses.get(0).reason.endsWith(" was revoked: revoked"), leased.losses.get(0).reason);
  }

  @Test
  void unreachable_server_that_was_named_is_followed_by_the_one_that_granted() throws Exception {
    player.play("lease server=s9", "pass 20000", "answer elsewhere:s9", "sent renewal:_:_:s1 renewal:_:_:s9",
        "answer unreachable", "pass 200", "sent renewal:_:_:s1");
  }

  /** One request is sent at a time. */
  @Test
  void paused_server_of_a_short_lease_leaves_time_for_another() throws Exception {
    LeasePlayer brief = new LeasePlayer().play("lease for=3000,from=0", "pass 1000", "sent renewal");
    assertEquals(1_000, brief.unanswered.limitMs);
    brief.play("sleep 1000", "answer lost", "pass 0", "sent grant", "answer terms:for=3000", "sent release:7");
    assertTrue(brief.unanswered.limitMs <= 1_000, () -> brief.unanswered.limitMs + " ms"); // then the renewal is due
    brief.play("loss", "next 8");
  }

  /** The error comes anywhere while a lease replaces another one, which its server extends no longer, or does again. */
  @Test
  void error_while_a_lease_replaces_another_loses_none_for_good_and_repeats_no_id() throws Exception {
    for (Outcome.Kind answer : List.of(Outcome.Kind.UNKNOWN_LEASE, Outcome.Kind.NO_ANSWER)) {
      for (int reading = 0; reading < 40; reading++) {
        replaceWithError(answer, reading);
      }
    }
  }

  private static void replaceWithError(Outcome.Kind toRenewals, int reading) throws Exception {
    FakeClock clock = new FakeClock();
    LeasedIds ids = new LeasedIds(clock);
    Lessee lessee = new Lessee(ids, clock, listOf(List.of(A, B)), loss -> { }, true, 60_000);
    Map<String, Terms> given = new HashMap<>(); // by token
    Set<Long> taken = new HashSet<>();
    boolean failed = false;
    int tookAt = 0;
    for (int step = 0; step < 400; step++) {
      try {
        for (Request due = lessee.due(); due != null; due = lessee.due()) {
          long tick = clock.wallMs() - LeasedIdsTest.EPOCH_MS;
          if (due.kind == Kind.GRANT && step > 0 && !failed) {
            failed = true;
            clock.failAfter(reading, new OutOfMemoryError("as the test says"));
          }
          boolean refuses = due.kind == Kind.RENEWAL && step > 20 && !failed;
          lessee.answered(due, refuses ? Outcome.of(toRenewals, "") : answer(due, given, tick));
        }
        long id = ids.next();
        assertTrue(taken.add(id));
        assertTrue(given.values().stream().anyMatch(
            one -> one.machine == (id >> 12 & 0x3ff) && id >>> 22 < one.untilTick), "beyond the interval");
        tookAt = step;
      } catch (OutOfMemoryError fault) {
        clock.passMs(1_000);
      } catch (FirnException none) {
        assertEquals(FirnException.Kind.NO_LEASE, none.kind());
      }
      clock.passMs(50);
    }
    assertEquals(399, tookAt, "after an error at reading " + reading);
  }

  /** Answers as a server does. */
  private static Outcome answer(Request due, Map<String, Terms> given, long tick) {
    if (due.kind == Kind.RELEASE) {
      return Outcome.of(Outcome.Kind.RELEASED, "");
    }
    Terms terms = due.kind == Kind.GRANT
        ? given.computeIfAbsent(due.token, token -> LeasedIdsTest.terms(given.size() + 1, tick, tick + 6_000))
        : given.values().stream().filter(one -> one.lease.equals(due.lease)).findFirst().get();
    terms.untilTick = tick + 6_000;
    return Outcome.of(LeasedIdsTest.terms(terms.machine, terms.fromTick, terms.untilTick));
  }

  @Test
  void lease_of_another_generator_is_released_without_a_use() {
    FakeClock clock = new FakeClock();
    LeasedIds ids = new LeasedIds(clock);
    Lessee unknowing = new Lessee(ids, clock, listOf(List.of(A)), loss -> { }, false, 60_000);
    unknowing.answered(unknowing.due(), Outcome.of(LeasedIdsTest.terms(1, LeasedIdsTest.NOW, LeasedIdsTest.NOW + 60_000)));
    LocalGenerator.Interval interval = ids.interval().get();
    assertEquals(1, interval.machineId);
    assertEquals(FakeClock.START_MS, interval.from.toEpochMilli());
    assertEquals(FakeClock.START_MS + 60_000, interval.until.toEpochMilli());
    unknowing.stop();
    assertTrue(ids.interval().isEmpty());
    Request release = unknowing.due();
    assertEquals(Kind.RELEASE, release.kind);
    assertNull(release.usedTick);
  }

  @Test
  void lease_that_is_granted_to_a_stopped_generator_is_given_back_unused() throws Exception {
    player.play("pass 0", "sent grant");
    player.ids.stop(); // as close() does, before the lessee hears of it
    player.play("answer terms", "reply grant lost", "stop", "saw release:7:- ?grant", "next closed");
  }

  @Test
  void terms_that_overflow_are_given_back() throws Exception {
    player.turn();
    Request request = player.unanswered;
    player.unanswered = null;
    Terms terms = player.granted(Map.of(), request);
    terms.tickMs = Integer.MIN_VALUE;
    terms.untilTick = Long.MAX_VALUE;
    player.lessee.answered(request, Outcome.of(terms));
    player.play("reply grant lost", "reply release unreachable", "pass 58000", "saw release:7 grant", "pass 10000", "saw ?release:7 ?grant",
        "pass 10000", "saw grant");
  }

  @Test
  void callback_that_throws_changes_nothing_else() {
    List<String> faults = new ArrayList<>();
    FakeClock clock = new FakeClock();
    Lessee careless = new Lessee(new LeasedIds(clock), clock, listOf(List.of(A)), why -> {
      throw new IllegalStateException("of the program");
    }, true, 60_000);
    Thread.currentThread().setUncaughtExceptionHandler((thread, fault) -> faults.add(fault.getMessage()));
    careless.answered(careless.due(), Outcome.of(LeasedIdsTest.terms(1, LeasedIdsTest.NOW, LeasedIdsTest.NOW + 60_000)));
    clock.passMs(20_000);
    careless.answered(careless.due(), Outcome.of(Outcome.Kind.REVOKED, "copied"));
    Thread.currentThread().setUncaughtExceptionHandler(null);
    assertEquals(List.of("of the program"), faults);
    assertEquals(Kind.GRANT, careless.due().kind);
  }
}
