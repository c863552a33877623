package io.firn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.firn.LeaseWire.Terms;
import io.firn.Lessee.Kind;
import io.firn.Lessee.Outcome;
import io.firn.Lessee.Request;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A lessee that plays the steps of tests/contract/lessees.json and jumps.json, which the generators of all languages
 * share. */
final class LeasePlayer {
  private static final Map<String, String> REASONS = Map.of("none", "no lease of a machine id since ",
      "ended", " UTC, and no server has extended it", "revoked", " was revoked: ", "closed", "the generator was closed",
      "jumped", " s, and no server has confirmed it", "nothing", "");

  /** A request that was sent. */
  private static final class Sent {
    final String text;
    final long atMs;

    Sent(String text, long atMs) {
      this.text = text;
      this.atMs = atMs;
    }

    /** Returns whether the request has the parts that the pattern has. */
    boolean matches(String pattern) {
      String[] parts = text.split(":");
      String[] expected = pattern.replace("?", "").split(":");
      for (int i = 0; i < expected.length; i++) {
        if (!expected[i].equals("_") && (i >= parts.length || !expected[i].equals(parts[i]))) {
          return false;
        }
      }
      return true;
    }
  }

  final FakeClock clock = new FakeClock();
  final LeasedIds ids = new LeasedIds(clock);
  final List<LeaseLoss> losses = new ArrayList<>();
  final List<String> servers = new ArrayList<>();
  final Lessee lessee;
  Request unanswered;
  private final long aheadMs;
  private final Map<String, String> replies = new HashMap<>(); // by kind
  private List<Sent> sent = new ArrayList<>(); // since the last check
  private final Map<Character, List<String>> names = Map.of('t', new ArrayList<>(), 'r', new ArrayList<>());
  private final Map<String, Terms> leases = new HashMap<>();
  private final Map<String, Long> used = new HashMap<>(); // the last tick, by lease
  private int machine = 6;
  private String held = ""; // the lease that was granted last, and is usable
  private long last = -1;
  private boolean woken;

  LeasePlayer(int servers, long aheadMs) {
    for (int i = 1; i <= servers; i++) {
      this.servers.add(addressOf("s" + i));
    }
    this.aheadMs = aheadMs;
    ids.onJump = () -> woken = true;
    lessee = new Lessee(ids, clock, new Lessee.Servers() {
      @Override
      public String pickForLease(Set<String> tried) {
        return LeasePlayer.this.servers.stream().filter(one -> !tried.contains(one)).findFirst().orElse(null);
      }

      @Override
      public boolean lists(String address) {
        return LeasePlayer.this.servers.contains(address);
      }
    }, loss -> {
      losses.add(loss);
      throw new IllegalStateException("as every case does");
    }, true, aheadMs);
  }

  LeasePlayer() {
    this(2, 60_000);
  }

  static void play(JsonNode one) throws FirnException {
    List<String> steps = new ArrayList<>();
    one.get("steps").forEach(step -> steps.add(step.asText()));
    new LeasePlayer(one.path("servers").asInt(2), one.path("ahead").asLong(60_000)).play(steps.toArray(new String[0]));
  }

  LeasePlayer play(String... steps) throws FirnException {
    for (int i = 0; i < steps.length; i++) {
      List<String> words = Arrays.asList(steps[i].split(" "));
      try {
        step(words.get(0), words.subList(1, words.size()));
      } catch (AssertionError | FirnException fault) {
        throw new AssertionError("step " + (i + 1) + ", " + steps[i] + ": " + fault.getMessage(), fault);
      }
    }
    return this;
  }

  private void step(String verb, List<String> words) throws FirnException {
    String word = words.isEmpty() ? "" : words.get(0);
    switch (verb) {
      case "lease":
        turn();
        answer("terms:" + word);
        sent.clear();
        break;
      case "pass":
        pass(Long.parseLong(word));
        break;
      case "work":
        for (long ms = Long.parseLong(word); ms > 0; ms -= 50) {
          pass(50);
          check(ids.next(), "", "");
        }
        break;
      case "sleep":
        clock.passMs(Long.parseLong(word));
        break;
      case "step":
        clock.stepWall(Long.parseLong(word));
        clock.passMs(1);
        break;
      case "next":
        next(word, words.size() > 1 ? words.get(1) : "");
        break;
      case "look":
        assertEquals(word.equals("id"), ids.interval().isPresent());
        assertTrue(ids.terms() != null && ids.untilMs() > 0);
        break;
      case "sent":
      case "saw":
        compare(verb.equals("sent"), words);
        break;
      case "answer":
        answer(word);
        break;
      case "reply":
        replies.put(word, words.get(1));
        if (unanswered != null) {
          turn();
        }
        break;
      case "waits":
        waits(word, Long.parseLong(words.get(1)), Long.parseLong(words.get(2)));
        break;
      case "loss":
        List<String> kinds = new ArrayList<>();
        losses.forEach(loss -> kinds.add(loss.kind.name().toLowerCase()));
        losses.clear();
        assertEquals(words, kinds);
        break;
      case "stop":
        lessee.stop();
        turn();
        break;
      case "stopped":
        assertEquals(word.equals("yes"), lessee.stopped());
        break;
      default:
        throw new AssertionError("unknown step");
    }
  }

  static String addressOf(String server) {
    return "10.0.0." + server.substring(1) + ":7609";
  }

  private static String wordOf(Kind kind) {
    return kind.name().toLowerCase();
  }

  // --- time and requests --------------------------------------------------------------------------

  /** Sends what is due, up to a request that has no standing reply. */
  void turn() {
    woken = false;
    while (true) {
      if (unanswered == null) {
        unanswered = lessee.due();
        if (unanswered == null) {
          return;
        }
        sent.add(new Sent(textOf(unanswered), clock.nanos() / 1_000_000));
        assertTrue(sent.size() < 100_000, "requests without end");
      }
      String reply = replies.get(wordOf(unanswered.kind));
      if (reply == null) {
        return;
      }
      reply(reply);
    }
  }

  private void reply(String word) {
    Request request = unanswered;
    unanswered = null;
    lessee.answered(request, outcome(word, request));
  }

  private void answer(String word) {
    assertNotNull(unanswered, "each request has an outcome");
    reply(word);
    turn();
  }

  private void pass(long ms) {
    turn();
    for (long until = clock.nanos() + ms * 1_000_000; clock.nanos() < until; turn()) {
      clock.passMs(Math.min((until - clock.nanos()) / 1_000_000, unanswered == null ? lessee.dueInMs() : ms));
    }
  }

  // --- checks -------------------------------------------------------------------------------------

  private long nowTick() {
    return clock.wallMs() - LeasedIdsTest.EPOCH_MS;
  }

  private void next(String expected, String more) throws FirnException {
    String reason = REASONS.get(expected);
    if (reason != null) {
      String message = assertThrows(FirnException.class, ids::next).getMessage();
      assertTrue(message.contains(reason), message);
      assertTrue(more.isEmpty() || more.equals("woken") == woken);
    } else {
      check(ids.next(), expected.equals("id") ? "" : expected, expected.equals("id") ? "+0" : more);
    }
    if (woken) {
      turn();
    }
  }

  void check(long id, String machineId, String afterWall) {
    Terms terms = leases.get(held);
    long tick = id >>> 22;
    assertEquals(terms.machine, id >> 12 & 0x3ff);
    assertTrue(machineId.isEmpty() || machineId.equals("" + terms.machine), "machine id " + terms.machine);
    assertTrue(tick >= terms.fromTick && tick < terms.untilTick, "outside the interval");
    long position = id & ~(0x3ffL << 12);
    assertTrue(position > last, "ids do not rise");
    last = position;
    used.put(held, tick);
    if (!afterWall.isEmpty()) {
      long expected = Long.parseLong(afterWall.substring(1));
      long after = tick - nowTick(); // not exact at nine tenths of the pace
      assertTrue(Math.abs(after - expected) <= (expected >= 1000 ? 60 : 0), after + " ms");
    }
  }

  private void compare(boolean inOrder, List<String> expected) {
    List<Sent> requests = sent;
    sent = new ArrayList<>();
    boolean same = !inOrder || requests.size() == expected.size();
    for (int i = 0; same && i < requests.size(); i++) {
      same = inOrder ? requests.get(i).matches(expected.get(i)) : expected.stream().anyMatch(requests.get(i)::matches);
    }
    for (String one : expected) {
      same &= one.startsWith("?") || requests.stream().anyMatch(each -> each.matches(one));
    }
    List<String> texts = new ArrayList<>();
    requests.forEach(each -> texts.add(each.text));
    assertTrue(same, "sent " + texts);
  }

  private void waits(String kind, long least, long most) {
    long longest = 0;
    long before = -1;
    for (Sent one : sent) {
      if (one.matches(kind)) {
        longest = before < 0 ? 0 : Math.max(longest, one.atMs - before);
        before = one.atMs;
      }
    }
    sent.clear();
    assertTrue(longest >= least && longest <= most + 1, longest + " ms");
  }

  private String name(char kind, String drawn) {
    if (drawn.isEmpty()) {
      return "-";
    }
    assertTrue(drawn.matches("[0-9a-f]{32}"), drawn);
    List<String> all = names.get(kind);
    if (!all.contains(drawn)) {
      all.add(drawn);
    }
    return "" + kind + (all.indexOf(drawn) + 1);
  }

  private String textOf(Request request) {
    String server = ":s" + request.server.charAt(7);
    assertEquals(clock.wallMs(), request.clockMs);
    switch (request.kind) {
      case GRANT:
        return "grant:" + name('t', request.token) + server;
      case RENEWAL:
        assertEquals(held, request.lease);
        return "renewal:" + name('r', request.turn) + ":" + name('r', request.acknowledged) + server;
      default:
        long first = Math.max(leases.get(request.lease).fromTick, 0) - 1;
        long most = used.isEmpty() ? first : Math.max(first, Collections.max(used.values()));
        assertTrue(request.usedTick >= first && request.usedTick <= most, "" + request.usedTick);
        assertEquals(used.getOrDefault(request.lease, request.usedTick), request.usedTick);
        return "release:" + leases.get(request.lease).machine + ":" + name('r', request.turn) + server;
    }
  }

  // --- answers ------------------------------------------------------------------------------------

  private Outcome outcome(String text, Request request) {
    String word = text.split(":")[0];
    String more = text.substring(Math.min(word.length() + 1, text.length()));
    switch (word) {
      case "terms":
        Map<String, String> keys = new HashMap<>();
        for (String pair : more.split(",")) {
          keys.put(pair.split("=")[0], pair.substring(pair.indexOf('=') + 1));
        }
        return Outcome.of(request.kind == Kind.GRANT ? granted(keys, request) : renewed(keys));
      case "released":
        return Outcome.of(Outcome.Kind.RELEASED, "");
      case "unknown":
        return Outcome.of(Outcome.Kind.UNKNOWN_LEASE, word);
      case "outdated":
        return Outcome.of(Outcome.Kind.OUTDATED, word);
      case "revoked":
        return Outcome.of(Outcome.Kind.REVOKED, word);
      case "lost":
        return Outcome.of(Outcome.Kind.NO_ANSWER, "timeout");
      case "unreachable":
        return Outcome.of(Outcome.Kind.UNSENT, "connection refused");
      case "notready":
        return Outcome.later(word, Long.parseLong("0" + more));
      case "claiming":
        return Outcome.claiming(word, Long.parseLong("0" + more));
      case "refused":
        return Outcome.of(Outcome.Kind.REFUSED, "the program's clock is ahead of the server's");
      case "none":
      case "other":
      case "old":
        return Outcome.of(Outcome.Kind.NO_LEASES, word);
      case "elsewhere":
        return Outcome.elsewhere("no", addressOf(more));
      default:
        throw new AssertionError("unknown word");
    }
  }

  private static long number(Map<String, String> keys, String key, long otherwise) {
    return keys.containsKey(key) ? Long.parseLong(keys.get(key)) : otherwise;
  }

  /** Returns terms with what an answer may change. */
  private Terms changed(int machineId, String lease, String server, long from, Map<String, String> keys) {
    Terms terms = LeasedIdsTest.terms(machineId, from, nowTick() + number(keys, "for", 60_000));
    terms.lease = lease;
    terms.server = keys.containsKey("server") ? addressOf(keys.get("server")) : server;
    terms.renewInMs = (int) number(keys, "renew", 20_000);
    long bound = number(keys, "bound", 0);
    if (bound > 0) {
      terms.ending = true;
      terms.untilTick = Math.min(terms.untilTick, LeasedIdsTest.NOW + bound);
    }
    switch (keys.getOrDefault("spoilt", "")) {
      case "name":
        terms.lease = "";
        break;
      case "overlap":
        terms.baseBits |= 1;
        break;
      case "empty":
        terms.untilTick = terms.fromTick;
        break;
      case "begin":
        terms.fromTick = -5;
        break;
      case "layout":
        terms.epochMs++;
        break;
      case "lease":
        terms.lease = "another";
        break;
      case "machine":
        terms.machine = 99;
        terms.baseBits = 99 << 12;
        break;
      case "less":
        terms.untilTick = leases.get(held).untilTick - 1;
        break;
      default:
    }
    return terms;
  }

  Terms granted(Map<String, String> keys, Request request) {
    machine++;
    long from = nowTick() + number(keys, "from", -3_600_000);
    Terms terms = changed(machine, "secret-" + machine, request.server, from, keys);
    if (keys.containsKey("again")) {
      Terms first = leases.get(held);
      String lease = keys.get("again").equals("lease") ? held : terms.lease;
      terms = changed(first.machine, lease, first.server, first.fromTick, keys);
      terms.untilTick = first.untilTick;
    }
    leases.put(terms.lease, terms);
    if (!keys.containsKey("spoilt") && terms.untilTick > nowTick()) {
      held = terms.lease;
    }
    return terms;
  }

  private Terms renewed(Map<String, String> keys) {
    Terms first = leases.get(held);
    Terms terms = changed(first.machine, held, first.server, first.fromTick, keys);
    if (!keys.containsKey("spoilt")) {
      leases.put(held, terms);
    }
    return terms;
  }
}
