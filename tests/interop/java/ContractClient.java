import io.firn.wire.ComposeRequest;
import io.firn.wire.IdFields;
import io.firn.wire.IdRun;
import io.firn.wire.IdService;
import io.firn.wire.InvalidUserAgentError;
import io.firn.wire.Reason;
import io.firn.wire.Refusal;
import io.firn.wire.ServerState;
import io.firn.wire.ServerStatus;
import java.util.ArrayList;
import java.util.List;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TCompactProtocol;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.layered.TFramedTransport;

/**
 * Every method of the wire contract, with the stubs of {@code thrift --gen java}.
 *
 * <pre>ContractClient PORT PORT_WITHOUT_MACHINE_ID REASON=PORT/TAG...</pre>
 *
 * Exit 0 when all answers were right; otherwise the first that was not is shown.
 */
final class ContractClient {
  private interface Call {
    void run() throws TException;
  }

  private final int port;
  private final int waitingPort;
  private final List<String> troubles;
  private final List<TTransport> transports = new ArrayList<>();

  private ContractClient(List<String> told) {
    port = Integer.parseInt(told.get(0));
    waitingPort = Integer.parseInt(told.get(1));
    troubles = told.subList(2, told.size());
  }

  private TTransport connect(int at) throws TException {
    TTransport transport = new TFramedTransport(new TSocket("127.0.0.1", at));
    transport.open();
    transports.add(transport);
    return transport;
  }

  private IdService.Client client() throws TException {
    return new IdService.Client(new TBinaryProtocol(connect(port)));
  }

  private static void check(boolean holds, Object shown) {
    if (!holds) throw new AssertionError(String.valueOf(shown));
  }

  private static void checkEqual(Object is, Object wanted) {
    check(wanted.equals(is), is + " is not " + wanted);
  }

  private static void checkRising(List<Long> ids) {
    for (int i = 1; i < ids.size(); ++i) check(ids.get(i) > ids.get(i - 1), ids);
  }

  // A busy server may not have looked a name up in time: it then asks the client to repeat the call.
  private static void checkRefused(Reason reason, Call call) throws TException {
    final long giveUp = System.nanoTime() + 20_000_000_000L;
    while (true) {
      try {
        call.run();
      } catch (Refusal refusal) {
        check(!refusal.message.isEmpty(), "a refusal without a sentence");
        check(refusal.isSetRetry_after_ms() && refusal.isSetAnother_server_may_help(), refusal);
        if (refusal.reason == Reason.OVERLOADED && System.nanoTime() < giveUp) continue;
        checkEqual(refusal.reason, reason);
        return;
      }
      throw new AssertionError("was not refused with " + reason);
    }
  }

  private void givesIdsInBothCodings() throws TException {
    for (TProtocol protocol :
        List.of(new TBinaryProtocol(connect(port)), new TCompactProtocol(connect(port)))) {
      IdService.Client client = new IdService.Client(protocol);
      List<Long> ids = new ArrayList<>();
      for (int i = 0; i < 100; ++i) ids.add(client.getId("default"));
      ids.add(client.getId(""));
      checkRising(ids);
    }
  }

  private void givesListsRunsAndTexts() throws TException {
    IdService.Client client = client();
    List<Long> ids = client.getIds("default", 1000);
    checkEqual(ids.size(), 1000);
    checkRising(ids);
    long count = 0;
    long last = ids.get(999);
    for (IdRun run : client.getRuns("default", 5000)) {
      check(run.first > last && run.stride >= 1, run);
      last = run.first + (run.count - 1) * run.stride;
      count += run.count;
    }
    checkEqual(count, 5000L);
    check(Long.parseLong(client.getText("default")) > last, "a text out of order");
  }

  private void explainsAndComposes() throws TException {
    IdService.Client client = client();
    long id = client.getId("default");
    IdFields fields = client.explain(id, "");
    checkEqual(List.of(fields.machine, fields.worker, fields.rack), List.of(13, 3, 1));
    checkEqual(fields.layout, "firn");
    check(!fields.isSetVersion() && !fields.isSetType() && !fields.isSetMethod(), fields);
    ComposeRequest request =
        new ComposeRequest()
            .setTicks(fields.ticks)
            .setWorker(3)
            .setRack(1)
            .setSequence(fields.sequence);
    checkEqual(client.compose(request), id);
    IdFields known = client.explain(1169786042799259000L, "twitter");
    checkEqual(known.time_ms, 1567733700834L);
    checkEqual(known.machine, 39);
    checkEqual(known.sequence, 3448L);
    checkEqual(client.formatTime(0, "twitter"), "2010-11-04T01:42:54.657Z");
  }

  private void tellsItsStatus() throws TException {
    IdService.Client client = client();
    client.ping();
    ServerStatus status = client.status();
    checkEqual(status.state, ServerState.READY);
    checkEqual(status.machine, 13);
    checkEqual(status.layout, "firn");
    check(!status.cluster_uuid.isEmpty(), status);
    check(status.bound_ms > status.wall_ms, status);
    check(status.tags.stream().anyMatch(tag -> tag.tag.equals("default")), status);
  }

  private void refusesWithTheDeclaredException() throws TException {
    IdService.Client client = client();
    checkRefused(Reason.UNKNOWN_TAG, () -> client.getId("nothing"));
    checkRefused(Reason.UNKNOWN_TAG, () -> client.getIds("nothing", 1));
    checkRefused(Reason.UNKNOWN_TAG, () -> client.getRuns("nothing", 1));
    checkRefused(Reason.UNKNOWN_TAG, () -> client.getText("nothing"));
    checkRefused(Reason.BAD_REQUEST, () -> client.getIds("default", 100001));
    checkRefused(Reason.BAD_REQUEST, () -> client.getRuns("default", 0));
    checkRefused(Reason.BAD_REQUEST, () -> client.explain(-1, ""));
    checkRefused(Reason.BAD_REQUEST, () -> client.compose(new ComposeRequest()));
    checkRefused(Reason.BAD_REQUEST, () -> client.formatTime(Long.MAX_VALUE, ""));
    check(client.getId("default") > 0, "no id");
  }

  private void saysThatItHoldsNoMachineId() throws TException {
    IdService.Client client = new IdService.Client(new TBinaryProtocol(connect(waitingPort)));
    checkRefused(Reason.NOT_READY, () -> client.getId("default"));
    checkRefused(Reason.NOT_READY, () -> client.getIds("default", 5));
    checkRefused(Reason.NOT_READY, () -> client.getRuns("default", 5));
    checkRefused(Reason.NOT_READY, () -> client.getText("default"));
    checkRefused(Reason.NOT_READY, () -> client.get_id("java"));
    checkRefused(Reason.NOT_READY, client::get_worker_id);
    checkRefused(Reason.NOT_READY, client::get_datacenter_id);
    client.ping();
    checkEqual(client.status().state, ServerState.NOT_READY);
    check(!client.status().isSetMachine(), "a machine id");
    check(client.get_timestamp() > 0, "no time");
  }

  private void tellsEveryTroubleByItsReason() throws TException {
    for (String trouble : troubles) {
      String[] parts = trouble.split("[=/]");
      Reason reason = Reason.valueOf(parts[0]);
      String tag = parts[2];
      IdService.Client client =
          new IdService.Client(new TBinaryProtocol(connect(Integer.parseInt(parts[1]))));
      checkRefusedInTheEnd(reason, () -> client.getId(tag));
      checkRefusedInTheEnd(reason, () -> client.getIds(tag, 1));
      checkRefusedInTheEnd(reason, () -> client.getRuns(tag, 1));
      checkRefusedInTheEnd(reason, () -> client.getText(tag));
    }
  }

  private static void checkRefusedInTheEnd(Reason reason, Call call) throws TException {
    Call often =
        () -> {
          for (int i = 0; i < 1000; ++i) call.run();
        };
    checkRefused(reason, often);
  }

  private void tellsWhichUserAgentsItTakes() throws TException {
    IdService.Client client = client();
    for (String agent : List.of("", "1", "a b", "a_b", "-")) {
      try {
        client.get_id(agent);
        throw new AssertionError("took the user agent \"" + agent + "\"");
      } catch (InvalidUserAgentError expected) {
        check(!expected.message.isEmpty(), "no sentence");
      }
    }
    check(client.get_id("A-1") > 0, "no id");
  }

  private void servesTwittersOldClients() throws TException {
    twitter.Snowflake.Client client =
        new twitter.Snowflake.Client(new TBinaryProtocol(connect(port)));
    check(client.get_timestamp() > 0, "no time");
    List<Long> ids = new ArrayList<>();
    for (int i = 0; i < 10; ++i) ids.add(client.get_id("snowflake-client-1"));
    checkEqual(client.get_worker_id(), ids.get(0) >> 12 & 31);
    checkEqual(client.get_datacenter_id(), ids.get(0) >> 17 & 31);
    try {
      client.get_id("1-starts-with-a-digit");
      throw new AssertionError("took a bad user agent");
    } catch (TApplicationException expected) {
      checkEqual(expected.getType(), TApplicationException.MISSING_RESULT);
    }
    ids.add(client.get_id("a"));
    checkRising(ids);
  }

  private void runAll() throws TException {
    givesIdsInBothCodings();
    givesListsRunsAndTexts();
    explainsAndComposes();
    tellsItsStatus();
    refusesWithTheDeclaredException();
    saysThatItHoldsNoMachineId();
    tellsEveryTroubleByItsReason();
    tellsWhichUserAgentsItTakes();
    servesTwittersOldClients();
    transports.forEach(TTransport::close);
  }

  public static void main(String[] told) throws TException {
    new ContractClient(List.of(told)).runAll();
    System.out.println("all answers were right");
  }
}
