package io.firn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.firn.LeaseWire.Terms;
import io.firn.Lessee.Kind;
import io.firn.Lessee.Outcome;
import io.firn.Lessee.Request;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** The lessee without a network: a test receives its requests and answers them. */
class LesseeTest {
  private static final String A = "10.0.0.1:7609";
  private static final String B = "10.0.0.2:7609";
  private static final String C = "10.0.0.3:7609";

  private final FakeClock clock = new FakeClock();
  private final LeasedIds ids = new LeasedIds(clock);
  private final List<String> losses = new ArrayList<>();
  private final List<String> servers = new ArrayList<>(List.of(A, B, C));
  private final Lessee lessee = new Lessee(ids, clock, listOf(servers), loss -> losses.add(loss.reason), true, 60_000);

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

  private long tick() {
    return clock.wallMs() - LeasedIdsTest.EPOCH_MS;
  }

  /** Terms of a machine id that end this far ahead of now. The server of the lease is 10.0.0.MACHINE. */
  private Terms terms(int machine, long aheadMs) {
    return LeasedIdsTest.terms(machine, tick(), tick() + aheadMs);
  }

  /** The next request, when it is due. */
  private Request request() {
    for (int i = 0; i < 1000; i++) {
      Request due = lessee.due();
      if (due != null) {
        return due;
      }
      clock.passMs(lessee.dueInMs());
    }
    throw new AssertionError("no request");
  }

  /** The next request of this kind, when it is due; others before it get no answer. */
  private Request request(Kind kind) {
    Request due = request();
    while (due.kind != kind) {
      lessee.answered(due, Outcome.of(Outcome.Kind.NO_ANSWER, "timeout"));
      due = request();
    }
    return due;
  }

  private void none(long ms) {
    for (long until = clock.wallMs() + ms; clock.wallMs() < until; clock.passMs(lessee.dueInMs())) {
      assertNull(lessee.due());
    }
  }

  private void noAnswer(Request request) {
    clock.passMs(LocalGenerator.ATTEMPT_MS);
    lessee.answered(request, Outcome.of(Outcome.Kind.NO_ANSWER, "timeout"));
  }

  /** Obtains the lease of the machine id from its server, for 60 s. */
  private void lease(int machine) {
    Request grant = request();
    assertEquals(Kind.GRANT, grant.kind);
    lessee.answered(grant, Outcome.of(terms(machine, 60_000)));
    assertEquals(machine, ids.terms().machine);
  }

  private void renew(Request renewal, long aheadMs, Consumer<Terms> change) {
    Terms terms = ids.terms();
    Terms longer = LeasedIdsTest.terms(terms.machine, terms.fromTick, tick() + aheadMs);
    change.accept(longer);
    lessee.answered(renewal, Outcome.of(longer));
  }

  private void renew(Request renewal) {
    renew(renewal, 60_000, terms -> { });
  }

  /** Obtains a lease of a server that no list has, through one that the list has. */
  private void leaseOf(String unlisted) {
    Terms terms = terms(1, 60_000);
    terms.server = unlisted;
    lessee.answered(request(), Outcome.of(terms));
  }

  /** Expects the release of a lease under which no id was issued. */
  private void givenBack(Request release, String server, Terms terms) {
    assertEquals(Kind.RELEASE, release.kind);
    assertEquals(server, release.server);
    assertEquals(terms.lease, release.lease);
    assertEquals("", release.turn);
    assertEquals(terms.fromTick - 1, release.usedTick);
    lessee.answered(release, Outcome.of(Outcome.Kind.RELEASED, ""));
  }

  // --- grants -------------------------------------------------------------------------------------

  @Test
  void lost_grant_answer_is_repeated_with_its_token_at_the_same_server() throws Exception {
    Request grant = request();
    String token = grant.token;
    assertTrue(token.matches("[0-9a-f]{32}"), token);
    assertEquals(A, grant.server);
    assertEquals(clock.wallMs(), grant.clockMs);
    noAnswer(grant);
    Request again = request();
    assertEquals(token, again.token);
    assertEquals(A, again.server);
    assertEquals(clock.wallMs(), again.clockMs);
    lessee.answered(again, Outcome.of(terms(1, 60_000)));
    ids.next();
    none(10_000);
  }

  @Test
  void server_that_loses_two_answers_is_given_up_with_its_token() {
    Request grant = request();
    String token = grant.token;
    noAnswer(grant);
    noAnswer(request());
    Request next = request();
    assertEquals(B, next.server);
    assertNotEquals(token, next.token);
  }

  @Test
  void slow_servers_get_more_time_in_the_next_round() {
    servers.retainAll(List.of(A, B));
    List<String> asked = new ArrayList<>();
    for (int i = 0; i < 12; i++) {
      Request grant = request();
      asked.add(grant.server);
      noAnswer(grant);
    }
    assertEquals(2, Collections.frequency(asked.subList(0, 4), A));
    assertEquals(4, Collections.frequency(asked.subList(4, 12), A)); // a token is repeated more often
    assertEquals(asked.get(4), asked.get(7));
  }

  @Test
  void only_server_is_asked_again_with_the_same_token() {
    servers.retainAll(List.of(A));
    String token = request().token;
    for (int i = 0; i < 6; i++) {
      Request again = request();
      assertEquals(A, again.server);
      assertEquals(token, again.token);
      noAnswer(again);
    }
  }

  @Test
  void unreachable_server_is_followed_by_the_next_one_at_once() {
    long before = clock.wallMs();
    for (String server : List.of(A, B, C)) {
      Request grant = request();
      assertEquals(server, grant.server);
      lessee.answered(grant, Outcome.of(Outcome.Kind.UNSENT, "connection refused"));
    }
    assertEquals(before, clock.wallMs());
    request();
    assertTrue(clock.wallMs() > before); // all were asked
    assertTrue(ids.reason().contains("connection refused"));
  }

  @Test
  void server_that_grants_none_is_followed_by_another_one_with_a_fresh_token() {
    Request grant = request();
    String token = grant.token;
    lessee.answered(grant, Outcome.of(Outcome.Kind.REFUSED, "--leases_max is 0"));
    assertTrue(ids.reason().contains("--leases_max"));
    Request next = request();
    assertEquals(B, next.server);
    assertNotEquals(token, next.token);
  }

  @Test
  void server_that_is_not_ready_gets_the_token_again_when_it_says() {
    Request grant = request();
    String token = grant.token;
    long before = clock.wallMs();
    lessee.answered(grant, Outcome.later("8 machine ids are being claimed", 3_000));
    Request again = request();
    assertEquals(A, again.server);
    assertEquals(token, again.token);
    assertTrue(clock.wallMs() >= before + 3_000);
  }

  @Test
  void terms_that_are_wrong_are_not_used() {
    Request grant = request();
    Terms wrong = terms(1, 60_000);
    wrong.baseBits |= 1;
    lessee.answered(grant, Outcome.of(wrong));
    assertNull(ids.terms());
    String message = assertThrows(FirnException.class, ids::next).getMessage();
    assertTrue(message.contains("overlap"), message);
    givenBack(request(), A, wrong);
    assertEquals(B, request().server);
  }

  @Test
  void unused_lease_that_begins_before_the_first_tick_is_released_with_minus_one() {
    for (long from : new long[] {0, -1, -5, Long.MIN_VALUE}) {
      Request grant = request();
      Terms wrong = terms(1, 60_000);
      wrong.fromTick = from;
      wrong.baseBits |= 1;
      lessee.answered(grant, Outcome.of(wrong));
      Request release = request();
      assertEquals(Kind.RELEASE, release.kind);
      assertEquals(-1, release.usedTick, "from tick " + from);
      lessee.answered(release, Outcome.of(Outcome.Kind.RELEASED, ""));
    }
  }

  @Test
  void lease_of_another_layout_is_given_back_and_another_one_requested() throws Exception {
    lease(1);
    lessee.answered(request(), Outcome.of(Outcome.Kind.REVOKED, "copied"));
    Request grant = request();
    String token = grant.token;
    assertEquals(B, grant.server);
    Terms other = terms(2, 60_000);
    other.epochMs++;
    lessee.answered(grant, Outcome.of(other));
    String message = assertThrows(FirnException.class, ids::next).getMessage();
    assertTrue(message.contains("layout is not that of"), message);
    givenBack(request(), B, other);
    assertNotEquals(token, request().token);
    lessee.answered(grant, Outcome.of(terms(3, 60_000)));
    ids.next();
  }

  @Test
  void no_known_server_is_a_reason() {
    servers.clear();
    none(2_000);
    assertTrue(ids.reason().contains("no usable server"));
    servers.add(C);
    assertEquals(C, request().server);
  }

  // --- renewals -----------------------------------------------------------------------------------

  @Test
  void renewals_have_fresh_turns_and_name_the_last_answer() throws Exception {
    lease(1);
    String before = "";
    for (int i = 0; i < 5; i++) {
      long began = clock.wallMs();
      Request renewal = request();
      assertEquals(20_000, clock.wallMs() - began);
      assertEquals(Kind.RENEWAL, renewal.kind);
      assertEquals("secret-1", renewal.lease);
      assertEquals(A, renewal.server);
      assertEquals(before, renewal.acknowledged);
      assertNotEquals(before, renewal.turn);
      before = renewal.turn;
      renew(renewal);
      assertEquals(clock.wallMs() + 60_000, ids.untilMs());
      ids.next();
    }
    assertEquals(List.of(), losses);
  }

  @Test
  void lost_renewal_answer_is_repeated_with_its_turn() throws Exception {
    lease(1);
    renew(request());
    Request renewal = request();
    String turn = renewal.turn;
    String acknowledged = renewal.acknowledged;
    long before = clock.wallMs();
    for (int i = 0; i < 3; i++) {
      noAnswer(renewal);
      renewal = request();
      assertEquals(Kind.RENEWAL, renewal.kind);
      assertEquals(turn, renewal.turn);
      assertEquals(acknowledged, renewal.acknowledged);
    }
    assertTrue(clock.wallMs() >= before + 3 * LocalGenerator.ATTEMPT_MS);
    renew(renewal);
    assertEquals(turn, request().acknowledged);
  }

  /** Returns the widest pause between two attempts of a renewal, if a server gives an interval of this length, and then
   * answers no more. */
  private long widestPause(long aheadMs, long givenMs) {
    Lessee one = new Lessee(ids, clock, listOf(List.of(A)), loss -> losses.add(loss.reason), true, aheadMs);
    one.answered(one.due(), Outcome.of(terms(1, givenMs)));
    long last = 0;
    long widest = 0;
    for (long left = givenMs; left > 0; left--, clock.passMs(1)) {
      Request due = one.due();
      if (due != null) {
        one.answered(due, Outcome.of(Outcome.Kind.NO_ANSWER, "timeout"));
        if (due.kind == Kind.RENEWAL) {
          widest = last == 0 ? 0 : Math.max(widest, clock.wallMs() - last);
          last = clock.wallMs();
        }
      }
    }
    return widest;
  }

  @Test
  void pauses_after_failures_are_at_most_a_twelfth_of_the_interval_that_was_given() {
    for (long[] one : new long[][] {{60_000, 60_000, 2_000}, {60_000, 6_000, 500}, {60_000, 3_000, 250},
        {60_000, 1_000, 100}, {6_000, 60_000, 500}, {2_000, 60_000, 166}}) {
      long widest = widestPause(one[0], one[1]);
      long longest = one[2];
      assertTrue(widest <= longest + 1 && widest >= longest / 2, one[0] + " " + one[1] + ": " + widest);
    }
  }

  @Test
  void advice_of_a_server_is_followed_up_to_10_s_and_half_of_what_is_left() {
    lease(1);
    long end = ids.untilMs();
    Request renewal = request(); // 40 s are left
    for (long expected : new long[] {10_000, 10_000, 10_000, 5_000, 2_500}) {
      long before = clock.wallMs();
      lessee.answered(renewal, Outcome.later("not ready", 3_600_000));
      for (renewal = request(); renewal.kind != Kind.RENEWAL; renewal = request()) {
        lessee.answered(renewal, Outcome.later("not ready", 3_600_000)); // a grant
      }
      assertEquals(expected, clock.wallMs() - before, 20);
    }
    assertTrue(clock.wallMs() < end);
  }

  @Test
  void renewal_is_sent_before_a_grant_and_both_before_a_release() {
    Terms ending = terms(1, 60_000);
    ending.ending = true;
    lessee.answered(request(), Outcome.of(ending));
    lessee.answered(request(Kind.GRANT), Outcome.of(terms(2, 15_000))); // after 40 s
    clock.passMs(11_000); // all three are due
    for (Kind kind : List.of(Kind.RENEWAL, Kind.GRANT, Kind.RELEASE)) {
      Request due = lessee.due();
      assertEquals(kind, due.kind);
      lessee.answered(due, Outcome.of(Outcome.Kind.NO_ANSWER, "timeout"));
    }
  }

  @Test
  void lease_that_its_server_extends_no_longer_is_used_and_replaced_at_once() throws Exception {
    lease(1);
    Request renewal = request();
    long before = clock.wallMs();
    lessee.answered(renewal, Outcome.of(Outcome.Kind.NO_LEASES, "--leases_max is 0"));
    Request grant = request();
    assertEquals(Kind.GRANT, grant.kind);
    assertEquals(B, grant.server);
    assertEquals(before, clock.wallMs());
    for (int i = 0; i < 10; i++) { // the renewal is not repeated
      lessee.answered(grant, Outcome.of(Outcome.Kind.REFUSED, "no"));
      assertEquals(1, ids.next() >> 12 & 0x3ff);
      grant = request();
      assertEquals(Kind.GRANT, grant.kind);
    }
    lessee.answered(grant, Outcome.of(terms(2, 60_000)));
    Request release = request();
    assertEquals(Kind.RELEASE, release.kind);
    assertEquals("", release.turn); // the server has not accepted that of the renewal
    assertEquals(List.of(), losses);
  }

  @Test
  void lease_that_its_server_does_not_know_is_not_released() {
    lease(1);
    lessee.answered(request(), Outcome.of(Outcome.Kind.UNKNOWN_LEASE, "the server was restarted"));
    lessee.answered(request(), Outcome.of(terms(2, 60_000)));
    assertEquals(Kind.RENEWAL, request().kind);
    lessee.answered(request(), Outcome.of(Outcome.Kind.UNKNOWN_LEASE, "the server was restarted"));
    lessee.stop();
    assertTrue(lessee.stopped());
  }

  // --- clocks -------------------------------------------------------------------------------------

  @Test
  void paused_server_of_a_short_lease_leaves_time_for_another() throws Exception {
    lessee.answered(request(), Outcome.of(terms(1, 3_000)));
    Request renewal = request();
    assertEquals(Kind.RENEWAL, renewal.kind);
    assertEquals(1_000, renewal.limitMs);
    clock.passMs(renewal.limitMs);
    lessee.answered(renewal, Outcome.of(Outcome.Kind.NO_ANSWER, "timeout"));
    Request grant = request();
    assertEquals(Kind.GRANT, grant.kind);
    lessee.answered(grant, Outcome.of(terms(2, 3_000)));
    Request release = request();
    assertEquals(Kind.RELEASE, release.kind);
    assertTrue(release.limitMs <= 1_000, () -> release.limitMs + " ms"); // then the renewal is due
    assertEquals(List.of(), losses);
    ids.next();
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
  void renewal_with_the_terms_of_another_lease_is_repeated() {
    lease(1);
    Request renewal = request();
    String turn = renewal.turn;
    long until = ids.untilMs();
    for (Consumer<Terms> change : List.<Consumer<Terms>>of(one -> one.lease = "another", one -> one.machine = 2,
        one -> one.baseBits = 5 << 12, one -> one.untilTick = tick() + 1, one -> one.epochMs += 1)) {
      renew(renewal, 60_000, change);
      assertEquals(until, ids.untilMs());
      renewal = request();
      assertEquals(turn, renewal.turn);
    }
    assertTrue(ids.reason().contains("another lease"));
  }

  @Test
  void revoked_lease_stops_at_once_and_another_one_is_taken() throws Exception {
    lease(1);
    long before = ids.next();
    Request renewal = request();
    lessee.answered(renewal, Outcome.of(Outcome.Kind.REVOKED, "two processes renew the same lease"));
    assertEquals(1, losses.size());
    assertTrue(losses.get(0).contains("machine id 1") && losses.get(0).contains("two processes"), losses.get(0));
    String message = assertThrows(FirnException.class, ids::next).getMessage();
    assertTrue(message.contains("two processes"), message);
    Request grant = request();
    assertEquals(Kind.GRANT, grant.kind);
    assertEquals(B, grant.server);
    lessee.answered(grant, Outcome.of(terms(2, 60_000)));
    assertTrue(ids.next() >>> 22 > before >>> 22);
    assertEquals(Kind.RENEWAL, request().kind); // and the revoked lease is not released
  }

  @Test
  void outdated_turn_was_overtaken_by_a_copy() {
    lease(1);
    lessee.answered(request(), Outcome.of(Outcome.Kind.OUTDATED, "a later renewal was answered"));
    assertEquals(1, losses.size());
    assertThrows(FirnException.class, ids::next);
  }

  @Test
  void unknown_lease_is_used_to_its_end_and_replaced_at_once() throws Exception {
    lease(1);
    long until = ids.untilMs();
    Request renewal = request();
    lessee.answered(renewal, Outcome.of(Outcome.Kind.UNKNOWN_LEASE, "the server was restarted"));
    long before = clock.wallMs();
    Request grant = request();
    assertEquals(Kind.GRANT, grant.kind);
    assertEquals(B, grant.server); // another one, if there is one
    assertEquals(before, clock.wallMs());
    assertEquals(1, ids.next() >> 12 & 0x3ff);
    while (clock.wallMs() < until - LocalGenerator.ATTEMPT_MS) {
      lessee.answered(grant, Outcome.of(Outcome.Kind.REFUSED, "no"));
      grant = request();
      assertEquals(Kind.GRANT, grant.kind);
      if (clock.wallMs() < until) {
        ids.next();
      }
    }
    clock.passMs(LocalGenerator.ATTEMPT_MS);
    lessee.due();
    assertThrows(FirnException.class, ids::next);
    assertEquals(1, losses.size());
  }

  @Test
  void ending_lease_is_renewed_up_to_its_bound_and_replaced_when_a_third_is_left() throws Exception {
    Terms ending = terms(1, 60_000);
    ending.ending = true;
    long began = clock.wallMs();
    long bound = tick() + 180_000;
    lessee.answered(request(), Outcome.of(ending));
    int renewals = 0;
    Request due = request();
    for (; due.kind == Kind.RENEWAL; due = request()) {
      renewals++;
      Terms longer = LeasedIdsTest.terms(1, ending.fromTick, Math.min(tick() + 60_000, bound));
      longer.ending = true;
      lessee.answered(due, Outcome.of(longer));
      ids.next();
    }
    assertEquals(Kind.GRANT, due.kind);
    assertTrue(renewals >= 6);
    assertTrue(clock.wallMs() - began >= 159_000 && clock.wallMs() - began < 167_000);
    ids.next();
    assertEquals(List.of(), losses);
  }

  /** A slow registry, or a probation: another server would claim a second machine id. */
  @Test
  void token_is_repeated_at_a_server_that_is_claiming_a_machine_id() throws Exception {
    Request grant = request();
    String token = grant.token;
    for (int i = 0; i < 20; i++) {
      lessee.answered(grant, Outcome.claiming("a machine id is being claimed", 700));
      grant = request();
      assertEquals(A, grant.server);
      assertEquals(token, grant.token);
    }
    lessee.answered(grant, Outcome.of(terms(1, 15_000)));
    ids.next();
  }

  @Test
  void ending_lease_is_replaced_when_a_third_is_left() throws Exception {
    Request first = request();
    Terms ending = terms(1, 60_000);
    ending.ending = true;
    lessee.answered(first, Outcome.of(ending));
    long before = ids.next();
    long began = clock.wallMs();
    Request grant = request(Kind.GRANT);
    assertEquals(40_000, clock.wallMs() - began, 20);
    assertEquals(B, grant.server);
    long between = ids.next();
    lessee.answered(grant, Outcome.of(terms(2, 60_000)));
    long after = ids.next();
    assertTrue(before < between && between >>> 22 < after >>> 22);
    assertEquals(2, after >> 12 & 0x3ff);
    Request release = request();
    assertEquals(Kind.RELEASE, release.kind);
    assertEquals("secret-1", release.lease);
    assertEquals(A, release.server);
    assertEquals(between >>> 22, release.usedTick);
    lessee.answered(release, Outcome.of(Outcome.Kind.RELEASED, ""));
    assertEquals(List.of(), losses);
  }

  @Test
  void lease_of_a_silent_server_is_replaced_when_a_third_is_left() throws Exception {
    lease(1);
    long end = ids.untilMs();
    Request one = request();
    String turn = one.turn;
    while (one.kind == Kind.RENEWAL) {
      noAnswer(one);
      ids.next();
      one = request();
    }
    assertEquals(Kind.GRANT, one.kind);
    assertTrue(clock.wallMs() >= end - 20_000 && clock.wallMs() < end - 5_000);
    lessee.answered(one, Outcome.of(terms(2, 60_000)));
    Request release = request();
    assertEquals(Kind.RELEASE, release.kind);
    assertEquals(turn, release.turn); // sent, though not answered
    noAnswer(release);
    assertEquals(release, request()); // it is repeated
    lessee.answered(release, Outcome.of(Outcome.Kind.UNKNOWN_LEASE, "it has ended"));
    assertEquals(Kind.RENEWAL, request().kind);
  }

  @Test
  void late_renewal_makes_the_next_lease_unnecessary() throws Exception {
    lease(1);
    Request one = request();
    while (one.kind == Kind.RENEWAL) {
      noAnswer(one);
      one = request();
    }
    noAnswer(one); // the grant
    for (one = request(); one.kind != Kind.RENEWAL; one = request()) {
      noAnswer(one);
    }
    renew(one);
    none(5_000);
    assertEquals(1, ids.next() >> 12 & 0x3ff);
  }

  @Test
  void another_server_is_asked_where_the_answer_says() {
    lease(1);
    Request renewal = request();
    String turn = renewal.turn;
    long before = clock.wallMs();
    lessee.answered(renewal, Outcome.elsewhere("it belongs to " + C, C));
    renewal = request();
    assertEquals(C, renewal.server);
    assertEquals(turn, renewal.turn);
    assertEquals(before, clock.wallMs());
    renew(renewal, 60_000, terms -> terms.server = C);
    assertEquals(C, request().server);
  }

  @Test
  void servers_that_name_each_other_are_followed_twice() {
    lease(1);
    Request renewal = request();
    long before = clock.wallMs();
    for (String server : List.of(A, B, A)) {
      assertEquals(server, renewal.server);
      assertEquals(before, clock.wallMs());
      lessee.answered(renewal, Outcome.elsewhere("no", server.equals(A) ? B : A));
      renewal = request();
    }
    for (int i = 0; i < 5; i++) {
      assertEquals(A, renewal.server);
      assertTrue(clock.wallMs() >= before + Lessee.RETRY_FIRST_MS / 2);
      before = clock.wallMs();
      lessee.answered(renewal, Outcome.elsewhere("no", B));
      renewal = request();
    }
  }

  @Test
  void address_that_neither_the_list_nor_the_grant_has_is_not_followed() {
    lease(1);
    for (String stranger : List.of("10.9.9.9:7609", "nonsense", "")) {
      long before = clock.wallMs();
      lessee.answered(request(), Outcome.elsewhere("no", stranger));
      assertEquals(A, request().server);
      assertTrue(clock.wallMs() > before);
    }
  }

  @Test
  void server_that_no_list_has_is_asked_only_where_it_is_named_again() {
    String unlisted = "192.168.1.1:7609";
    leaseOf(unlisted);
    Request renewal = request();
    assertEquals(A, renewal.server);
    lessee.answered(renewal, Outcome.elsewhere("no", unlisted));
    renewal = request();
    assertEquals(unlisted, renewal.server);
    lessee.answered(renewal, Outcome.of(Outcome.Kind.UNSENT, "no route"));
    renewal = request();
    assertEquals(A, renewal.server);
    renew(renewal, 60_000, terms -> terms.server = unlisted);
    servers.add(unlisted);
    assertEquals(unlisted, request().server);
  }

  @Test
  void release_follows_only_known_addresses() {
    String unlisted = "192.168.1.1:7609";
    leaseOf(unlisted);
    lessee.stop();
    for (String named : List.of("10.9.9.9:7609", unlisted)) {
      Request release = request();
      assertEquals(A, release.server);
      lessee.answered(release, Outcome.elsewhere("no", named));
    }
    assertEquals(unlisted, request().server);
  }

  @Test
  void wrong_clock_leaves_the_lease_to_its_end() throws Exception {
    lease(1);
    clock.stepWall(-7_200_000);
    Request renewal = request();
    assertEquals(clock.wallMs(), renewal.clockMs);
    lessee.answered(renewal, Outcome.of(Outcome.Kind.REFUSED, "the program's clock is 2 h behind"));
    ids.next();
    assertTrue(ids.reason().contains("2 h behind"));
    Request again = request();
    assertEquals(renewal.turn, again.turn);
  }

  // --- the end of the interval and of the generator -------------------------------------------------

  @Test
  void pause_beyond_the_end_is_a_loss_and_a_new_lease_continues_later() throws Exception {
    lease(1);
    long before = ids.next();
    clock.passMs(3_600_000); // the process was stopped
    assertThrows(FirnException.class, ids::next);
    Request due = request();
    assertEquals(1, losses.size());
    while (due.kind != Kind.GRANT) {
      lessee.answered(due, Outcome.of(Outcome.Kind.UNKNOWN_LEASE, "it has ended"));
      due = request();
    }
    lessee.answered(due, Outcome.of(terms(1, 60_000)));
    assertTrue(ids.next() >>> 22 > before >>> 22);
    assertEquals(1, losses.size());
  }

  @Test
  void stop_closes_the_ids_and_releases_with_the_last_turn_and_tick() throws Exception {
    lease(1);
    renew(request());
    Request renewal = request();
    long last = ids.next();
    ids.stop(); // as close() does, while the renewal is under way
    noAnswer(renewal);
    lessee.stop();
    assertFalse(lessee.stopped());
    Request release = request();
    assertEquals(Kind.RELEASE, release.kind);
    assertEquals(renewal.turn, release.turn);
    assertEquals(last >>> 22, release.usedTick);
    lessee.answered(release, Outcome.of(Outcome.Kind.RELEASED, ""));
    assertTrue(lessee.stopped());
    none(70_000);
  }

  @Test
  void lease_of_another_generator_is_released_without_a_use() {
    Lessee unknowing = new Lessee(ids, clock, listOf(List.of(A)), loss -> losses.add(loss.reason), false, 60_000);
    unknowing.answered(unknowing.due(), Outcome.of(terms(1, 60_000)));
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
  void lease_that_is_granted_to_a_stopped_generator_is_given_back_unused() {
    Request grant = request();
    ids.stop();
    lessee.answered(grant, Outcome.of(terms(1, 60_000)));
    lessee.stop();
    Request release = request();
    assertEquals("secret-1", release.lease);
    assertEquals(tick() - 1, release.usedTick);
    assertThrows(FirnException.class, ids::next);
  }

  @Test
  void late_answers_open_a_stopped_generator_no_more() {
    lease(1);
    Request renewal = request();
    ids.stop();
    lessee.stop();
    renew0(renewal);
    assertEquals(FirnException.Kind.CLOSED, assertThrows(FirnException.class, ids::next).kind());
  }

  private void renew0(Request renewal) {
    lessee.answered(renewal, Outcome.of(terms(1, 60_000)));
  }

  @Test
  void release_is_not_repeated_beyond_the_end_of_its_lease() {
    lease(1);
    lessee.stop();
    long end = clock.wallMs() + 60_000;
    while (clock.wallMs() < end) {
      Request release = lessee.due();
      if (release != null) {
        noAnswer(release);
      } else {
        clock.passMs(lessee.dueInMs());
      }
    }
    assertNull(lessee.due());
    assertTrue(lessee.stopped());
  }

  /** Returns how long an unused lease, whose release is not answered, is released. */
  private long releasedMs(Consumer<Terms> change) {
    Lessee one = new Lessee(ids, clock, listOf(List.of(A)), loss -> losses.add(loss.reason), true, 60_000);
    Terms unusable = terms(1, 15_000);
    unusable.baseBits |= 1;
    change.accept(unusable);
    one.answered(one.due(), Outcome.of(unusable));
    one.stop();
    long began = clock.wallMs();
    long last = 0;
    for (int i = 0; i < 1_500; i++, clock.passMs(100)) {
      Request due = one.due();
      if (due != null) {
        assertEquals(Kind.RELEASE, due.kind);
        last = clock.wallMs() - began;
        one.answered(due, Outcome.of(Outcome.Kind.UNSENT, "refused"));
      }
    }
    assertTrue(one.stopped());
    return last;
  }

  @Test
  void unused_lease_is_released_until_its_end_or_for_ahead() {
    long own = releasedMs(terms -> { });
    assertTrue(own > 12_000 && own < 15_000, own + " ms");
    for (Consumer<Terms> change : List.<Consumer<Terms>>of(
        terms -> terms.untilTick += 600_000, // more than was asked for
        terms -> terms.untilTick = 0, // the end is unknown
        terms -> {
          terms.tickMs = Integer.MIN_VALUE;
          terms.untilTick = Long.MAX_VALUE;
        })) {
      long ahead = releasedMs(change);
      assertTrue(ahead > 57_000 && ahead < 60_000, ahead + " ms");
    }
  }

  @Test
  void callback_that_throws_changes_nothing_else() {
    Lessee careless = new Lessee(ids, clock, listOf(List.of(A)), why -> {
      throw new IllegalStateException("of the program");
    }, true, 60_000);
    Thread.currentThread().setUncaughtExceptionHandler((thread, fault) -> losses.add(fault.getMessage()));
    Request grant = careless.due();
    careless.answered(grant, Outcome.of(terms(1, 60_000)));
    clock.passMs(20_000);
    Request renewal = careless.due();
    careless.answered(renewal, Outcome.of(Outcome.Kind.REVOKED, "copied"));
    Thread.currentThread().setUncaughtExceptionHandler(null);
    assertEquals(List.of("of the program"), losses);
    assertEquals(Kind.GRANT, careless.due().kind);
  }
}
