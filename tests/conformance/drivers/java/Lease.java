import io.firn.FirnClient;
import io.firn.FirnException;
import io.firn.LocalGenerator;
import io.firn.Options;
import io.firn.Tls;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/** The Java client's generator of local ids, controlled as ../../README.md describes. */
public final class Lease {
  private static final int PASS = 10; // ids
  private static final int PAUSE_MS = 10;

  /** A thread that takes ids, and writes them into a file of its own. */
  private final class Issuer extends Thread {
    private final PrintWriter out;
    private volatile long ids;
    private volatile long failed;
    private volatile String failure = "";

    Issuer(String file) throws IOException {
      out = new PrintWriter(Files.newBufferedWriter(Paths.get(file)));
    }

    @Override
    public void run() {
      try (out) {
        while (pass()) {
          out.flush();
          Thread.sleep(PAUSE_MS);
        }
      } catch (InterruptedException interrupted) {
        throw new IllegalStateException(interrupted);
      }
    }

    /** Takes some ids. Returns false when the generator was closed. */
    private boolean pass() {
      try {
        for (int i = 0; i < PASS; i++) {
          out.println(generator.next());
          ids++;
        }
        return true;
      } catch (FirnException fault) {
        if (fault.kind() == FirnException.Kind.CLOSED) {
          return false;
        }
        failed++;
        failure = failure.isEmpty() ? fault.getMessage() : failure;
        return true;
      }
    }
  }

  private final List<Issuer> issuers = new ArrayList<>();
  private final AtomicInteger lost = new AtomicInteger();
  private FirnClient client;
  private LocalGenerator generator;
  private String file;

  private String open(Map<String, String> words) throws IOException {
    file = words.get("file");
    Options options = new Options(words.get("servers"));
    if (words.containsKey("tls_ca")) {
      options.tls(new Tls(words.get("tls_ca"), words.get("tls_cert"), words.get("tls_key"), null));
    }
    client = new FirnClient(options);
    try {
      generator = client.localGenerator(words.get("name")).ahead(milliseconds(words, "ahead_ms"))
          .onLost(why -> lost.incrementAndGet()).open(milliseconds(words, "timeout_ms"));
    } catch (FirnException failure) {
      return String.format("{\"failure\": %s}", text(failure.getMessage()));
    }
    for (int i = 0; i < Integer.parseInt(words.get("threads")); i++) {
      issuers.add(new Issuer(file + "." + i));
      issuers.get(i).start();
    }
    return "{}";
  }

  private static Duration milliseconds(Map<String, String> words, String key) {
    return Duration.ofMillis(Long.parseLong(words.get(key)));
  }

  private String soFar() {
    String failure = "";
    for (Issuer one : issuers) {
      failure = failure.isEmpty() ? one.failure : failure;
      one.failure = "";
    }
    String machine = generator.machineId().isPresent() ? "" + generator.machineId().getAsInt() : "null";
    return String.format("{\"ids\": %d, \"failed\": %d, \"failure\": %s, \"machine_id\": %s, \"until_ms\": %d, \"lost\": %d}",
        ids(), failed(), text(failure), machine, generator.until().map(Instant::toEpochMilli).orElse(0L), lost.get());
  }

  private long ids() {
    return issuers.stream().mapToLong(one -> one.ids).sum();
  }

  private long failed() {
    return issuers.stream().mapToLong(one -> one.failed).sum();
  }

  private String burst(int count) throws IOException {
    long[] taken = new long[count];
    int got = 0;
    String failure = "";
    long began = System.nanoTime();
    try {
      for (; got < count; got++) {
        taken[got] = generator.next();
      }
    } catch (FirnException fault) {
      failure = fault.getMessage();
    }
    long tookMs = (System.nanoTime() - began) / 1_000_000;
    try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(Paths.get(file + ".burst")))) {
      for (int i = 0; i < got; i++) {
        out.println(taken[i]);
      }
    }
    return String.format("{\"ids\": %d, \"took_ms\": %d, \"failure\": %s}", got, tookMs, text(failure));
  }

  private String close() throws InterruptedException {
    generator.close();
    for (Issuer one : issuers) {
      one.join();
    }
    client.close();
    String after = "";
    try {
      generator.next();
    } catch (FirnException failure) {
      after = failure.getMessage();
    }
    return String.format("{\"ids\": %d, \"failed\": %d, \"after_close\": %s}", ids(), failed(), text(after));
  }

  /** A text in JSON. The client's messages contain no control characters. */
  private static String text(String words) {
    return '"' + words.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
  }

  private String answer(String line) throws IOException, InterruptedException {
    String[] parts = line.split(" ");
    Map<String, String> words = new HashMap<>();
    for (int i = 1; i < parts.length; i++) {
      String[] word = parts[i].split("=", 2);
      words.put(word[0], word[1]);
    }
    switch (parts[0]) {
      case "open":
        return open(words);
      case "so_far":
        return soFar();
      case "burst":
        return burst(Integer.parseInt(words.get("count")));
      default:
        return close();
    }
  }

  public static void main(String[] arguments) throws IOException, InterruptedException {
    Lease driver = new Lease();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      System.out.println(driver.answer(line));
    }
    System.exit(0); // threads may still issue
  }
}
