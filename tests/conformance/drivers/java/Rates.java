import io.firn.FirnClient;
import io.firn.LocalTag;
import io.firn.Options;
import io.firn.wire.IdService;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import org.apache.thrift.async.AsyncMethodCallback;
import org.apache.thrift.async.TAsyncClientManager;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.transport.TNonblockingSocket;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.layered.TFramedTransport;

/** Ids a second of the Java client and of a bare stub: see ../../rates.py. */
public final class Rates {
  private static final int BATCH = 100;
  private static final int BUNCH = 50;

  /** One call. */
  private interface Asking {
    Object call() throws Exception;
  }

  /** One call of the client. */
  private interface Asked {
    Object by(FirnClient client) throws Exception;
  }

  private final String address;
  private final double seconds;
  private final int threads;
  private final ExecutorService pool = Executors.newCachedThreadPool();

  private Rates(String[] words) {
    address = words[0];
    seconds = Double.parseDouble(words[1]);
    threads = Integer.parseInt(words[2]);
  }

  private IdService.Client stub() throws Exception {
    String[] parts = address.split(":");
    TFramedTransport transport =
        new TFramedTransport(new TSocket(parts[0], Integer.parseInt(parts[1])));
    transport.open();
    return new IdService.Client(new TBinaryProtocol(transport));
  }

  /** Calls a second, after a warm-up, of threads that each call what `make` gives them. */
  private double measured(Callable<Asking> make) throws Exception {
    List<Asking> calls = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      calls.add(make.call());
    }
    spell(calls, seconds / 4);
    return spell(calls, seconds);
  }

  private double spell(List<Asking> calls, double length) throws Exception {
    long began = System.nanoTime();
    long until = began + (long) (length * 1e9);
    List<Future<Long>> ends = new ArrayList<>();
    for (Asking asking : calls) {
      ends.add(pool.submit(() -> {
        long count = 0;
        for (; System.nanoTime() < until; count += BUNCH) {
          for (int i = 0; i < BUNCH; i++) {
            asking.call();
          }
        }
        return count;
      }));
    }
    long total = 0;
    for (Future<Long> end : ends) {
      total += end.get();
    }
    return total / ((System.nanoTime() - began) / 1e9);
  }

  private double ours(Asked asked, LocalTag... local) throws Exception {
    Options options = new Options("firn://" + address).deadlineMs(30_000).attemptLimitMs(10_000)
        .localRanges(List.of(local));
    try (FirnClient client = new FirnClient(options)) {
      return measured(() -> () -> asked.by(client));
    }
  }

  private double bareSingle() throws Exception {
    return measured(() -> {
      IdService.Client client = stub();
      return () -> client.getId("default");
    });
  }

  private double bareBatch() throws Exception {
    return BATCH * measured(() -> {
      IdService.Client client = stub();
      return () -> client.getIds("default", BATCH);
    });
  }

  /** Calls a second, after a warm-up, of chains in which each answer starts the next call. */
  private double chained(Callable<Supplier<CompletableFuture<Long>>> make) throws Exception {
    List<Supplier<CompletableFuture<Long>>> calls = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      calls.add(make.call());
    }
    double rate = 0;
    for (double length : new double[] {seconds / 4, seconds}) {
      long began = System.nanoTime();
      long until = began + (long) (length * 1e9);
      List<CompletableFuture<Long>> ends = new ArrayList<>();
      for (Supplier<CompletableFuture<Long>> call : calls) {
        CompletableFuture<Long> end = new CompletableFuture<>();
        ends.add(end);
        chain(call, until, 0, end);
      }
      long total = 0;
      for (CompletableFuture<Long> end : ends) {
        total += end.get();
      }
      rate = total / ((System.nanoTime() - began) / 1e9);
    }
    return rate;
  }

  // On threads that are there: with two processors, the common pool starts one for each task.
  private void chain(
      Supplier<CompletableFuture<Long>> call, long until, long done, CompletableFuture<Long> end) {
    if (System.nanoTime() >= until) {
      end.complete(done);
      return;
    }
    call.get().whenCompleteAsync((id, failure) -> {
      if (failure != null) {
        end.completeExceptionally(failure);
      } else {
        chain(call, until, done + 1, end);
      }
    }, pool);
  }

  private double bareSingleAsync() throws Exception {
    String[] parts = address.split(":");
    TAsyncClientManager manager = new TAsyncClientManager();
    return chained(() -> {
      IdService.AsyncClient client = new IdService.AsyncClient(new TBinaryProtocol.Factory(),
          manager, new TNonblockingSocket(parts[0], Integer.parseInt(parts[1])));
      return () -> {
        CompletableFuture<Long> answer = new CompletableFuture<>();
        try {
          client.getId("default", new AsyncMethodCallback<Long>() {
            @Override
            public void onComplete(Long id) {
              answer.complete(id);
            }

            @Override
            public void onError(Exception failure) {
              answer.completeExceptionally(failure);
            }
          });
        } catch (Exception failure) {
          answer.completeExceptionally(failure);
        }
        return answer;
      };
    });
  }

  private double singleAsync() throws Exception {
    Options options = new Options("firn://" + address).deadlineMs(30_000).attemptLimitMs(10_000);
    try (FirnClient client = new FirnClient(options)) {
      return chained(() -> () -> client.nextIdAsync("default"));
    }
  }

  public static void main(String[] words) throws Exception {
    Rates rates = new Rates(words);
    System.out.printf("{\"bare single\": %f, \"bare batch\": %f, \"single\": %f, \"batch\": %f, "
            + "\"bare single async\": %f, \"single async\": %f, "
            + "\"ahead snowflake\": %f, \"ahead segment\": %f}%n",
        rates.bareSingle(), rates.bareBatch(), rates.ours(client -> client.nextId("default")),
        BATCH * rates.ours(client -> client.nextIds("default", BATCH)),
        rates.bareSingleAsync(), rates.singleAsync(),
        rates.ours(client -> client.nextId("default"), LocalTag.snowflake("default")),
        rates.ours(client -> client.nextId("count"), LocalTag.segment("count")));
    System.exit(0);
  }
}
