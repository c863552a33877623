package io.firn;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The frames of the wire contract, valid and hostile, that the clients of all languages share. */
class FramesTest {
  private static final IdCheck ANY_ID = new IdCheck("a layout of a newer server", Set.of(), 0);

  private static Stream<DynamicTest> each(String kind, Checked check) throws IOException {
    JsonNode all = new ObjectMapper().readTree(new File(System.getProperty("firn.frames")));
    List<DynamicTest> tests = new ArrayList<>();
    for (JsonNode frames : List.of(all.get(kind), all.get("lease_" + kind))) {
      assertTrue(frames.size() > 5);
      frames.forEach(one -> tests.add(DynamicTest.dynamicTest(one.get("case").asText(), () -> check.run(one))));
    }
    return tests.stream();
  }

  private interface Checked {
    void run(JsonNode frame) throws Exception;
  }

  private static byte[] bytes(JsonNode of) {
    String hex = of.get("frame").asText();
    byte[] bytes = new byte[hex.length() / 2];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
    }
    return bytes;
  }

  private static Ask<?> ask(JsonNode of) {
    JsonNode arguments = of.path("arguments");
    String tag = arguments.path("tag").asText();
    switch (of.get("method").asText()) {
      case "getId":
        return Ask.id(tag);
      case "getIds":
        return Ask.ids(tag, arguments.get("count").asInt());
      case "getRuns":
        return Ask.runs(tag, arguments.get("count").asLong());
      case "getText":
        return Ask.text(tag);
      case "status":
        return Ask.status();
      case "lease":
        return Ask.lease(LeaseWire.ask(text(arguments, "token"), text(arguments, "name"),
            arguments.path("clock_ms").asLong(), number(arguments, "ahead_ms"), number(arguments, "rack")));
      case "renewLease":
        return Ask.renewLease(LeaseWire.renewal(text(arguments, "lease"), text(arguments, "turn"),
            text(arguments, "acknowledged"), arguments.path("clock_ms").asLong(), number(arguments, "ahead_ms")));
      case "releaseLease":
        return Ask.releaseLease(LeaseWire.end(text(arguments, "lease"), text(arguments, "turn"),
            arguments.has("used_tick") ? arguments.get("used_tick").asLong() : null));
      default:
        return Ask.servers(arguments.path("known_version").asLong());
    }
  }

  private static String text(JsonNode arguments, String name) {
    return arguments.path(name).asText("");
  }

  private static Integer number(JsonNode arguments, String name) {
    return arguments.has(name) ? arguments.get(name).asInt() : null;
  }

  @TestFactory
  Stream<DynamicTest> writesRequest() throws IOException {
    return each("requests", one ->
        assertArrayEquals(bytes(one), Wire.request(ask(one), one.get("sequence").asInt())));
  }

  @TestFactory
  Stream<DynamicTest> readsAnswer() throws IOException {
    return each("answers", FramesTest::check);
  }

  private static void check(JsonNode one) throws Failure {
    if (one.has("incomplete")) {
      assertTrue(isIncomplete(bytes(one)));
      return;
    }
    Failure failure = null;
    Object answer = null;
    try {
      answer = checked(one, ask(one));
    } catch (Failure thrown) {
      failure = thrown;
    }
    if (one.has("answer")) {
      assertNull(failure);
      assertEquals(one.get("answer"), json(answer));
      return;
    }
    assertTrue(failure != null, "it was read");
    assertEquals(one.has("lacks_method"), failure.lacksMethod);
    boolean refused = one.has("refusal") || one.has("lease_refusal");
    assertEquals(refused ? Attempt.End.REFUSED : Attempt.End.BROKEN, failure.end);
    if (one.has("lease_refusal")) {
      JsonNode refusal = one.get("lease_refusal");
      assertEquals(LeaseWire.Fault.of(refusal.get("fault").asInt()), failure.leaseFault);
      assertEquals(refusal.get("message").asText(), failure.detail);
      assertEquals(refusal.get("server").asText(), failure.leaseServer);
      assertEquals(null, failure.reason);
    }
    if (one.has("refusal")) {
      JsonNode refusal = one.get("refusal");
      assertEquals(Reason.of(refusal.get("reason").asInt()), failure.reason);
      assertEquals(refusal.get("message").asText(), failure.detail);
      assertEquals(refusal.get("retry_after_ms").asLong(), failure.retryAfterMs);
      assertEquals(refusal.get("another_server_may_help").asBoolean(), failure.anotherMayHelp);
    }
  }

  private static boolean isIncomplete(byte[] frame) throws Failure {
    return frame.length < 4 || Wire.frameSize(ByteBuffer.wrap(frame).getInt()) > frame.length - 4;
  }

  private static <T> T checked(JsonNode one, Ask<T> ask) throws Failure {
    byte[] frame = bytes(one);
    int size = Wire.frameSize(ByteBuffer.wrap(frame).getInt());
    assertEquals(size, frame.length - 4);
    T answer = Wire.answer(Arrays.copyOfRange(frame, 4, frame.length), ask, one.get("sequence").asInt());
    String fault = ask.faultOf(answer, ANY_ID);
    if (fault != null) {
      throw new Failure(Attempt.End.BROKEN, fault);
    }
    return answer;
  }

  /** Returns an answer as frames.json has it. */
  private static JsonNode json(Object answer) {
    ObjectMapper mapper = new ObjectMapper();
    if (answer instanceof Long) {
      return mapper.valueToTree(answer.toString());
    }
    if (answer instanceof long[]) {
      return mapper.valueToTree(Arrays.stream((long[]) answer).mapToObj(Long::toString).toArray());
    }
    if (answer instanceof List) {
      return mapper.valueToTree(((List<?>) answer).stream().map(one -> (Wire.Run) one)
          .map(run -> List.of("" + run.first, run.count, "" + run.stride)).collect(Collectors.toList()));
    }
    if (answer instanceof Wire.Status) {
      Wire.Status status = (Wire.Status) answer;
      var tags = mapper.createArrayNode();
      status.tags.forEach(one -> tags.addObject().put("tag", one.tag).put("strategy", one.strategy)
          .put("as_issued", one.asIssued));
      return mapper.createObjectNode().put("cluster_uuid", status.clusterUuid).put("layout", status.layout)
          .put("state", status.state.ordinal()).put("wall_ms", "" + status.wallMs).set("tags", tags);
    }
    if (answer instanceof Wire.ServerList) {
      Wire.ServerList list = (Wire.ServerList) answer;
      var servers = mapper.createArrayNode();
      list.servers.forEach(one -> servers.addObject().put("address", one.address).put("rack", one.rack)
          .put("weight", one.weight).put("online", one.online).put("state", one.state.ordinal())
          .put("tls", one.tls));
      return mapper.createObjectNode().put("version", "" + list.version).put("ask_again_ms", list.askAgainMs)
          .set("servers", servers);
    }
    if (answer instanceof LeaseWire.Terms) {
      return json((LeaseWire.Terms) answer);
    }
    return answer.equals(true) ? mapper.createObjectNode() : mapper.valueToTree(answer);
  }

  private static JsonNode json(LeaseWire.Terms terms) {
    return new ObjectMapper().createObjectNode().put("lease", terms.lease).put("number", "" + terms.number)
        .put("machine", terms.machine).put("worker", terms.worker).put("rack", terms.rack)
        .put("base_bits", "" + terms.baseBits).put("tick_shift", terms.tickShift)
        .put("sequence_shift", terms.sequenceShift).put("sequence_bits", terms.sequenceBits)
        .put("sequence_from", "" + terms.sequenceFrom).put("sequence_count", "" + terms.sequenceCount)
        .put("tick_ms", terms.tickMs).put("epoch_ms", "" + terms.epochMs).put("from_tick", "" + terms.fromTick)
        .put("until_tick", "" + terms.untilTick).put("renew_in_ms", terms.renewInMs).put("ending", terms.ending)
        .put("server", terms.server);
  }
}
