import io.firn.Attempt;
import io.firn.FirnClient;
import io.firn.FirnException;
import io.firn.LocalTag;
import io.firn.Options;
import io.firn.SeenServer;
import io.firn.Tls;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicLong;

/** The Java client, controlled by standard input and output as ../../README.md describes. */
public final class Driver {
  private final List<String> events = new ArrayList<>();
  private FirnClient client;
  private Load load;

  private static int number(Map<String, String> words, String key, int other) {
    return words.containsKey(key) ? Integer.parseInt(words.get(key)) : other;
  }

  private Map<String, Object> open(Map<String, String> words) {
    Options options = new Options(words.get("servers"))
        .clusterUuid(words.getOrDefault("cluster_uuid", ""))
        .failfast("failfast".equals(words.get("on_failure")))
        .deadlineMs(number(words, "deadline_ms", 200))
        .attemptLimitMs(number(words, "attempt_limit_ms", 80))
        .attemptsMax(number(words, "attempts_max", 3))
        .connectionsMax(number(words, "connections_max", 64))
        .serversMax(number(words, "servers_max", 16))
        .onEvent(event -> {
          synchronized (events) {
            events.add(event.kind);
          }
          if ("throws".equals(words.get("on_event"))) {
            throw new IllegalStateException("as the case says");
          }
          if ("closes".equals(words.get("on_event"))) {
            client.close();
          }
        });
    if (words.containsKey("rack")) {
      options.rack(number(words, "rack", 0));
    }
    List<LocalTag> local = new ArrayList<>();
    if (words.containsKey("segment")) {
      local.add(LocalTag.segment(words.get("segment")));
    }
    if (words.containsKey("snowflake")) {
      local.add(LocalTag.snowflake(words.get("snowflake")));
    }
    options.localRanges(local);
    if (words.containsKey("tls_ca")) {
      options.tls(new Tls(words.get("tls_ca"), words.get("tls_cert"), words.get("tls_key"),
          words.get("tls_name")));
    }
    synchronized (events) {
      events.clear();
    }
    Map<String, Object> told = new LinkedHashMap<>();
    try {
      client = new FirnClient(options);
    } catch (IllegalArgumentException fault) {
      told.put("kind", "invalid");
      told.put("failure", fault.getMessage());
    }
    return told;
  }

  private List<Long> ids(String verb, Map<String, String> words) throws FirnException {
    String tag = words.getOrDefault("tag", "");
    int count = number(words, "count", 1);
    if (!words.containsKey("deadline_ms")) {
      switch (verb) {
        case "ids":
          return client.nextIds(tag, count);
        case "text":
          return List.of(Long.parseLong(client.nextText(tag)));
        default:
          return List.of(client.nextId(tag));
      }
    }
    long deadline = number(words, "deadline_ms", 0);
    switch (verb) {
      case "ids":
        return client.nextIds(tag, count, deadline);
      case "text":
        return List.of(Long.parseLong(client.nextText(tag, deadline)));
      default:
        return List.of(client.nextId(tag, deadline));
    }
  }

  private Map<String, Object> call(String verb, Map<String, String> words) throws Exception {
    Map<String, Object> told = new LinkedHashMap<>();
    List<Long> ids = new ArrayList<>();
    int[] counts = new int[2];
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < number(words, "threads", 1); i++) {
      threads.add(new Thread(() -> {
        for (int j = 0; j < number(words, "times", 1); j++) {
          List<Long> got = null;
          FirnException failure = null;
          try {
            got = ids(verb, words);
          } catch (FirnException fault) {
            failure = fault;
          }
          synchronized (told) {
            counts[failure == null ? 0 : 1]++;
            if (failure == null) {
              ids.addAll(got);
            } else if (counts[1] == 1) {
              tell(told, failure);
            }
          }
        }
      }));
    }
    for (Thread thread : threads) {
      thread.start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    told.put("answered", counts[0]);
    told.put("failed", counts[1]);
    told.put("ids", ids);
    return told;
  }

  private static void tell(Map<String, Object> told, FirnException failure) {
    List<Object> attempts = new ArrayList<>();
    for (Attempt one : failure.attempts()) {
      attempts.add(Map.of("server", one.server, "end", one.end.toString(), "reason",
          one.reason == null ? "" : one.reason.name()));
    }
    told.put("kind", failure.kind().name().toLowerCase());
    told.put("failure", failure.getMessage());
    told.put("reason", failure.reason() == null ? "" : failure.reason().name());
    told.put("retry_after_ms", failure.retryAfterMs());
    told.put("attempts", attempts);
  }

  /** Calls without end; their ids go into a file. */
  private static final class Load {
    private final String file;
    private final List<Thread> threads = new ArrayList<>();
    private final List<AtomicLong> calls = new ArrayList<>();
    private final List<List<Long>> ids = new ArrayList<>();
    private final Map<String, Object> told = new LinkedHashMap<>();
    private volatile boolean ending;
    private long failed;
    private long longestNs;

    Load(FirnClient client, String tag, String file, int count) {
      this.file = file;
      for (int i = 0; i < count; i++) {
        AtomicLong mine = new AtomicLong();
        List<Long> got = new ArrayList<>();
        calls.add(mine);
        ids.add(got);
        threads.add(new Thread(() -> run(client, tag, mine, got)));
        threads.get(i).start();
      }
    }

    private void run(FirnClient client, String tag, AtomicLong mine, List<Long> got) {
      long longest = 0;
      boolean closed = false;
      while (!ending && !closed) {
        long began = System.nanoTime();
        try {
          got.add(client.nextId(tag));
        } catch (FirnException failure) {
          closed = failure.kind() == FirnException.Kind.CLOSED;
          synchronized (this) {
            if (failed++ == 0) {
              tell(told, failure);
            }
          }
        }
        longest = Math.max(longest, System.nanoTime() - began);
        mine.incrementAndGet();
      }
      synchronized (this) {
        longestNs = Math.max(longestNs, longest);
      }
    }

    Map<String, Object> end() throws Exception {
      ending = true;
      for (Thread thread : threads) {
        thread.join();
      }
      long answered = 0;
      try (PrintWriter out = new PrintWriter(file)) {
        for (List<Long> got : ids) {
          answered += got.size();
          got.forEach(out::println);
        }
      }
      told.put("answered", answered);
      told.put("failed", failed);
      told.put("longest_us", longestNs / 1000);
      return told;
    }
  }

  /** So many calls at once. */
  private Map<String, Object> burst(int calls, String tag) {
    Map<String, Object> told = new LinkedHashMap<>();
    long began = System.nanoTime();
    List<CompletableFuture<Long>> all = new ArrayList<>();
    for (int i = 0; i < calls; i++) {
      all.add(client.nextIdAsync(tag));
    }
    List<Long> ids = new ArrayList<>();
    int failed = 0;
    for (CompletableFuture<Long> one : all) {
      try {
        ids.add(one.join());
      } catch (CompletionException fault) {
        if (failed++ == 0) {
          tell(told, (FirnException) fault.getCause());
        }
      }
    }
    told.put("took_ms", (System.nanoTime() - began) / 1_000_000);
    told.put("answered", ids.size());
    told.put("failed", failed);
    told.put("ids", ids);
    return told;
  }

  private interface Attempted {
    Object run() throws Exception;
  }

  /** Passes wrong values for every parameter; counts the calls that failed, and names those that did not. */
  private Map<String, Object> wrong() {
    Map<String, List<Attempted>> all = new LinkedHashMap<>();
    for (String tag : new String[] {null, "a".repeat(129), "\u00fc".repeat(65)}) {
      all.computeIfAbsent("tag", name -> new ArrayList<>()).addAll(List.of(
          () -> client.nextId(tag), () -> client.nextIdAsync(tag).get(), () -> client.nextIds(tag, 1),
          () -> client.nextIdsAsync(tag, 1).get(), () -> client.nextText(tag), () -> client.nextTextAsync(tag).get()));
    }
    for (int count : new int[] {0, -1, 100_001, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
      all.computeIfAbsent("count", name -> new ArrayList<>()).addAll(List.of(
          () -> client.nextIds("order", count), () -> client.nextIdsAsync("order", count).get()));
    }
    for (long limit : new long[] {-1, 0, Long.MIN_VALUE, Long.MAX_VALUE}) {
      all.computeIfAbsent("deadlineMs " + limit, name -> new ArrayList<>()).addAll(List.of(
          () -> client.nextId("order", limit), () -> client.nextIdAsync("order", limit).get(),
          () -> client.nextIds("order", 1, limit), () -> client.nextTextAsync("order", limit).get()));
    }
    for (String servers : new String[] {null, "", "list://", "list://nowhere", "http://127.0.0.1:1"}) {
      all.put("servers " + servers, List.of(() -> new FirnClient(new Options(servers))));
    }
    String good = "list://127.0.0.1:1";
    all.put("options", List.of(() -> new FirnClient(null),
        () -> new FirnClient(new Options(good).deadlineMs(0)), () -> new FirnClient(new Options(good).attemptLimitMs(-1)),
        () -> new FirnClient(new Options(good).attemptsMax(0)), () -> new FirnClient(new Options(good).connectionsMax(0)),
        () -> new FirnClient(new Options(good).serversMax(-1)), () -> new FirnClient(new Options(good).deadline(null)),
        () -> new FirnClient(new Options(good).clusterUuid(null)), () -> new FirnClient(new Options(good).onEvent(null)),
        () -> new FirnClient(new Options(good).localRanges(null)),
        () -> new FirnClient(new Options(good).localRanges(List.of(LocalTag.segment(null))))));
    all.put("localGenerator", List.of(() -> client.localGenerator(null).open(), () -> client.localGenerator("").open(),
        () -> client.localGenerator("a").ahead(null), () -> client.localGenerator("a").open(null),
        () -> client.localGenerator("a").ahead(java.time.Duration.ofMillis(1)).open()));
    int failed = 0;
    List<String> taken = new ArrayList<>();
    for (Map.Entry<String, List<Attempted>> one : all.entrySet()) {
      for (Attempted call : one.getValue()) {
        try {
          call.run();
          taken.add(one.getKey());
        } catch (Exception fault) {
          failed++;
        }
      }
    }
    Map<String, Object> told = new LinkedHashMap<>();
    told.put("answered", taken.size());
    told.put("failed", failed);
    told.put("failure", String.join(",", taken));
    return told;
  }

  private Map<String, Object> run(String verb, Map<String, String> words) throws Exception {
    Map<String, Object> told = new LinkedHashMap<>();
    switch (verb) {
      case "open":
        return open(words);
      case "view":
        Map<String, Object> servers = new LinkedHashMap<>();
        for (SeenServer one : client.servers()) {
          servers.put(one.address, one.health);
        }
        told.put("servers", servers);
        return told;
      case "seen":
        synchronized (events) {
          told.put("events", new ArrayList<>(events));
        }
        return told;
      case "start":
        load = new Load(client, words.get("tag"), words.get("file"), number(words, "threads", 4));
        return told;
      case "so_far":
        told.put("calls", load.calls.stream().mapToLong(AtomicLong::get).min().getAsLong());
        return told;
      case "stop":
        return load.end();
      case "burst":
        return burst(number(words, "calls", 1), words.get("tag"));
      case "wrong":
        return wrong();
      case "close":
        if (client != null) {
          client.close();
        }
        return told;
      default:
        return call(verb, words);
    }
  }

  private static String json(Object value) {
    StringBuilder out = new StringBuilder();
    if (value instanceof Map) {
      for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
        out.append(out.length() == 0 ? "" : ",").append(json(entry.getKey())).append(":")
            .append(json(entry.getValue()));
      }
      return "{" + out + "}";
    }
    if (value instanceof List) {
      for (Object one : (List<?>) value) {
        out.append(out.length() == 0 ? "" : ",").append(json(one));
      }
      return "[" + out + "]";
    }
    if (value instanceof Number) {
      return value.toString();
    }
    for (char letter : String.valueOf(value).toCharArray()) {
      boolean plain = letter >= ' ' && letter != '"' && letter != '\\';
      out.append(plain ? String.valueOf(letter) : String.format("\\u%04x", (int) letter));
    }
    return '"' + out.toString() + '"';
  }

  public static void main(String[] arguments) throws IOException {
    Driver driver = new Driver();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] parts = line.split(" ");
      Map<String, String> words = new HashMap<>();
      for (int i = 1; i < parts.length; i++) {
        int mark = parts[i].indexOf('=');
        words.put(parts[i].substring(0, mark), parts[i].substring(mark + 1));
      }
      try {
        System.out.println(json(driver.run(parts[0], words)));
      } catch (Exception fault) {
        fault.printStackTrace();
        return;
      }
    }
  }
}
