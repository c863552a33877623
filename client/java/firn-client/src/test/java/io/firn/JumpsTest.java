package io.firn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.firn.Lessee.Outcome;
import io.firn.Lessee.Request;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Jumps of the wall clock, in the table that the generators of all languages share. */
class JumpsTest {
  /** A lessee, and the table's steps. */
  private static final class World {
    private final FakeClock clock = new FakeClock();
    private final LeasedIds ids = new LeasedIds(clock);
    private final Lessee lessee = new Lessee(ids, clock, new Lessee.Servers() {
      @Override
      public String pickForLease(Set<String> tried) {
        return "10.0.0.9:7609";
      }

      @Override
      public boolean lists(String address) {
        return true;
      }
    }, loss -> { }, true, 60_000);
    private final List<String> sent = new ArrayList<>();
    private Request unanswered;
    private boolean woken;

    World() {
      ids.onJump = () -> woken = true;
    }

    private void turn() {
      woken = false;
      if (unanswered == null && (unanswered = lessee.due()) != null) {
        sent.add(unanswered.kind.name().toLowerCase());
      }
    }

    private void pass(long ms) {
      turn();
      for (long until = clock.nanos() + ms * 1_000_000; clock.nanos() < until; turn()) {
        clock.passMs(Math.min((until - clock.nanos()) / 1_000_000, unanswered == null ? lessee.dueInMs() : ms));
      }
    }

    private Outcome outcome(String word) {
      long tick = clock.wallMs() - LeasedIdsTest.EPOCH_MS;
      switch (word) {
        case "terms":
          boolean renewed = unanswered.kind == Lessee.Kind.RENEWAL;
          LeaseWire.Terms terms = LeasedIdsTest.terms(renewed ? ids.terms().machine : ids.terms() == null ? 1 : 2,
              renewed ? ids.terms().fromTick : tick - 3_600_000, tick + 60_000);
          terms.renewInMs = 20_000;
          return Outcome.of(terms);
        case "unknown":
          return Outcome.of(Outcome.Kind.UNKNOWN_LEASE, "");
        case "refused":
          return Outcome.of(Outcome.Kind.REFUSED, "the program's clock is ahead of the server's");
        default:
          return Outcome.of(Outcome.Kind.NO_ANSWER, "timeout");
      }
    }

    private void answer(String word) {
      Request request = unanswered;
      Outcome outcome = outcome(word);
      unanswered = null;
      lessee.answered(request, outcome);
      turn();
    }

    private void next(String expected) throws FirnException {
      if (expected.equals("id")) {
        assertEquals(clock.wallMs() - LeasedIdsTest.EPOCH_MS, ids.next() >>> 22);
      } else {
        String message = assertThrows(FirnException.class, ids::next).getMessage();
        assertTrue(message.contains("the wall clock has jumped forward by 3600 s, and no server has confirmed it"), message);
      }
      if (woken) {
        turn();
      }
    }

    void step(String step) throws FirnException {
      String[] words = step.split(" ");
      switch (words[0]) {
        case "lease":
          turn();
          answer("terms");
          sent.clear();
          break;
        case "pass":
          pass(Long.parseLong(words[1]));
          break;
        case "step":
          clock.stepWall(Long.parseLong(words[1]));
          clock.passMs(1);
          break;
        case "next":
          next(words[1]);
          break;
        case "look":
          assertEquals(words[1].equals("id"), ids.interval().isPresent());
          assertTrue(ids.terms() != null && ids.untilMs() > 0);
          break;
        case "sent":
          assertEquals(List.of(words).subList(1, words.length), sent);
          sent.clear();
          break;
        default:
          answer(words[1]);
      }
    }
  }

  private static void play(JsonNode steps) throws FirnException {
    World world = new World();
    for (int i = 0; i < steps.size(); i++) {
      try {
        world.step(steps.get(i).asText());
      } catch (AssertionError fault) {
        throw new AssertionError("step " + (i + 1) + ", " + steps.get(i) + ": " + fault.getMessage(), fault);
      }
    }
  }

  @TestFactory
  Stream<DynamicTest> jump() throws IOException {
    File table = new File(new File(System.getProperty("firn.frames")).getParent(), "jumps.json");
    List<DynamicTest> tests = new ArrayList<>();
    new ObjectMapper().readTree(table).get("cases").forEach(one ->
        tests.add(DynamicTest.dynamicTest(one.get("case").asText(), () -> play(one.get("steps")))));
    assertTrue(tests.size() > 10);
    return tests.stream();
  }
}
