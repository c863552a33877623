import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ReferenceConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.SslConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;
import org.apache.dubbo.rpc.RpcContext;
import org.apache.dubbo.rpc.service.EchoService;
import org.apache.dubbo.rpc.service.GenericService;

/**
 * A Dubbo consumer that a test controls: it reads a command from each line of standard input and answers each with one
 * line. Arguments: the registry's address or "-", and with "-" the address of one server.
 */
public class DubboConsumer {
  private final ApplicationConfig application = new ApplicationConfig("firn-test");
  private final String registry;
  private final String direct;
  private final Map<String, Object> references = new HashMap<>();

  private DubboConsumer(String registry, String direct) {
    this.registry = registry;
    this.direct = direct;
    application.setQosEnable(false);
  }

  public static void main(String[] arguments) throws Exception {
    useTls();
    DubboConsumer consumer = new DubboConsumer(arguments[0], arguments.length > 1 ? arguments[1] : "");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("ready");
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      System.out.println("> " + consumer.answer(line.split(" ")).replace("\n", "\\n"));
      System.out.flush();
    }
    System.exit(0);
  }

  /** Dubbo 3.3 uses TLS only if it has a certificate of its own. */
  private static void useTls() {
    if (System.getenv("FIRN_CA") == null) return;
    SslConfig ssl = new SslConfig();
    ssl.setClientTrustCertCollectionPath(System.getenv("FIRN_CA"));
    ssl.setClientKeyCertChainPath(System.getenv("FIRN_CERT"));
    ssl.setClientPrivateKeyPath(System.getenv("FIRN_KEY"));
    DubboBootstrap.getInstance().ssl(ssl);
  }

  private String answer(String[] words) {
    try {
      return String.valueOf(call(words));
    } catch (Throwable thrown) {
      StringWriter trace = new StringWriter();
      thrown.printStackTrace(new PrintWriter(trace));
      if (trace.toString().isEmpty()) return "no trace";
      return "threw " + thrown.getClass().getName() + " cause=" + thrown.getCause() + ": " + thrown.getMessage();
    }
  }

  private Object call(String[] words) throws Exception {
    boolean usesFirn = words[0].startsWith("next")
        || Arrays.asList("load", "rate", "calls", "oneway").contains(words[0]);
    io.firn.IdService firn = usesFirn
        ? refer(io.firn.IdService.class, false) : null;
    com.robert.vesta.service.intf.IdService vesta = words[0].startsWith("vesta")
        ? refer(com.robert.vesta.service.intf.IdService.class, false) : null;
    long[] numbers = new long[0];
    if (words[0].startsWith("vesta")) {
      numbers = Arrays.stream(words).skip(1).mapToLong(Long::parseLong).toArray();
    }
    switch (words[0]) {
      case "nextId":
        return firn.nextId(words[1]);
      case "nextIds":
        List<Long> ids = firn.nextIds(words[1], Integer.parseInt(words[2]));
        for (Object id : ids) {
          if (!(id instanceof Long)) return "not a Long: " + id.getClass();
        }
        return ids;
      case "nextTraced":
        RpcContext.getContext().clearAttachments();  // those of an earlier call
        RpcContext.getContext().setAttachment(words[2], words[3]);
        return firn.nextId(words[1]);
      case "nextText":
        return firn.nextText(words[1]);
      case "vestaGenId":
        return vesta.genId();
      case "vestaExpId":
        return vesta.expId(numbers[0]);
      case "vestaTransTime":
        Date date = vesta.transTime(numbers[0]);
        return date.getTime();
      case "vestaMakeId":
        return makeId(vesta, numbers);
      case "echo":
        return ((EchoService) refer(io.firn.IdService.class, false)).$echo(words[1]);
      case "echoNumber":
        return ((EchoService) refer(io.firn.IdService.class, false)).$echo(Long.valueOf(words[1]));
      case "generic":
        return generic(io.firn.IdService.class, false, words);
      case "genericAsync":
        return generic(io.firn.IdService.class, true, words);
      case "genericVesta":
        return generic(com.robert.vesta.service.intf.IdService.class, false, words);
      case "oneway":
        RpcContext.getContext().asyncCall(() -> firn.nextId(words[1]));
        RpcContext.getContext().asyncCall((Runnable) () -> firn.nextId(words[1]));
        return "sent";
      case "load":
        return load(firn, words[1], Integer.parseInt(words[2]), Long.parseLong(words[3]));
      case "rate":
        return rate(firn, words[1], Integer.parseInt(words[2]), Long.parseLong(words[3]));
      case "calls":
        for (int i = Integer.parseInt(words[1]); i > 0; --i) firn.nextId("default");
        return "done";
      case "sleep":
        Thread.sleep(Long.parseLong(words[1]));
        return "slept";
      default:
        return "unknown command";
    }
  }

  private static long makeId(com.robert.vesta.service.intf.IdService vesta, long[] n) {
    switch (n.length) {
      case 2:
        return vesta.makeId(n[0], n[1]);
      case 3:
        return vesta.makeId(n[0], n[1], n[2]);
      case 4:
        return vesta.makeId(n[0], n[1], n[2], n[3]);
      case 5:
        return vesta.makeId(n[0], n[1], n[2], n[3], n[4]);
      default:
        return vesta.makeId(n[0], n[1], n[2], n[3], n[4], n[5]);
    }
  }

  /** generic METHOD TYPE=VALUE... */
  private Object generic(Class<?> service, boolean async, String[] words) throws Exception {
    GenericService generic = (GenericService) (Object) refer(service, true);
    List<String> types = new ArrayList<>();
    List<Object> values = new ArrayList<>();
    for (String word : Arrays.asList(words).subList(2, words.length)) {
      String[] parts = word.split("=");
      types.add(parts[0]);
      values.add(parts[0].equals("long") ? Long.valueOf(parts[1])
          : parts[0].equals("int") ? (Object) Integer.valueOf(parts[1]) : parts[1]);
    }
    String[] named = types.toArray(new String[0]);
    if (async) {
      CompletableFuture<Object> future = generic.$invokeAsync(words[1], named, values.toArray());
      return shown(future.get());
    }
    return shown(generic.$invoke(words[1], named, values.toArray()));
  }

  private static String shown(Object value) {
    if (value instanceof Map) return "map " + new java.util.TreeMap<Object, Object>((Map<?, ?>) value);
    return value.getClass().getSimpleName() + " " + value;
  }

  /** Calls from `threads` threads for `millis`; all ids must differ. */
  private Object load(io.firn.IdService firn, String tag, int threads, long millis) throws Exception {
    Set<Long> ids = ConcurrentHashMap.newKeySet();
    AtomicLong calls = new AtomicLong();
    AtomicLong failed = new AtomicLong();
    StringBuffer first = new StringBuffer();
    long end = System.nanoTime() + millis * 1_000_000;
    List<Thread> all = new ArrayList<>();
    for (int i = 0; i < threads; ++i) {
      Thread thread = new Thread(() -> {
        while (System.nanoTime() < end) {
          calls.incrementAndGet();
          try {
            ids.add(firn.nextId(tag));
          } catch (Throwable thrown) {
            if (failed.incrementAndGet() == 1) first.append(thrown);
          }
        }
      });
      thread.start();
      all.add(thread);
    }
    for (Thread thread : all) thread.join();
    return "calls=" + calls + " failed=" + failed + " distinct=" + ids.size() + " " + first;
  }

  /** How long calls take in microseconds: `threads` threads make one after the other for `millis`, at least one. */
  private static Object rate(io.firn.IdService firn, String tag, int threads, long millis) throws Exception {
    long begin = System.nanoTime();
    long end = begin + millis * 1_000_000;
    List<CompletableFuture<List<Long>>> callers = new ArrayList<>();
    for (int i = 0; i < threads; ++i) {
      CompletableFuture<List<Long>> caller = new CompletableFuture<>();
      callers.add(caller);
      new Thread(() -> {
        try {
          List<Long> took = new ArrayList<>();
          long now = System.nanoTime();
          do {
            firn.nextId(tag);
            long then = System.nanoTime();
            took.add(then - now);
            now = then;
          } while (now < end);
          caller.complete(took);
        } catch (Throwable thrown) {
          caller.completeExceptionally(thrown);
        }
      }).start();
    }
    List<Long> took = new ArrayList<>();
    for (CompletableFuture<List<Long>> caller : callers) took.addAll(caller.get());
    long nanos = System.nanoTime() - begin;
    took.sort(null);
    return "calls=" + took.size() + " rate=" + took.size() * 1e9 / nanos
        + " p50_us=" + took.get(took.size() / 2) / 1e3 + " p99_us=" + took.get(took.size() * 99 / 100) / 1e3;
  }

  @SuppressWarnings("unchecked")
  private <T> T refer(Class<T> service, boolean generic) {
    return (T) references.computeIfAbsent(service.getName() + generic, key -> {
      ReferenceConfig<Object> reference = new ReferenceConfig<>();
      reference.setApplication(application);
      reference.setInterface(service.getName());
      reference.setCheck(true);
      reference.setTimeout(10_000);
      if (generic) reference.setGeneric("true");
      if (registry.equals("-")) {
        reference.setUrl("dubbo://" + direct);
      } else {
        RegistryConfig where = new RegistryConfig(registry);
        where.setTimeout(20_000);
        reference.setRegistry(where);
      }
      return reference.get();
    });
  }
}
