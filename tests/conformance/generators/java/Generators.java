import cn.hutool.core.lang.Snowflake;
import com.sun.management.OperatingSystemMXBean;
import io.firn.FirnClient;
import io.firn.FirnException;
import io.firn.LocalGenerator;
import io.firn.Options;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeId;

/** Rates of LocalGenerator, CosId's SnowflakeId and Hutool's Snowflake: see ../../generator_rates.py. */
public final class Generators {
  private static final int CHECKED = 4_000; // ids of each thread that are compared with all others
  private static final int BUNCH = 50; // ids between two checks of the end

  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private static volatile boolean over;

  private final int threads;
  private final int lengthMs;
  private final List<Double> rates = new ArrayList<>();
  private final List<Double> cpu = new ArrayList<>();
  private final LongSupplier take;
  private long different;
  private long sum; // so that no call is optimized away

  private Generators(int threads, int lengthMs, LongSupplier take) {
    this.threads = threads;
    this.lengthMs = lengthMs;
    this.take = take;
  }

  private void onThreads(IntConsumer work) {
    List<Thread> running = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      int at = i;
      running.add(new Thread(() -> work.accept(at)));
      running.get(i).start();
    }
    for (Thread one : running) {
      try {
        one.join();
      } catch (InterruptedException interrupted) {
        throw new IllegalStateException(interrupted);
      }
    }
  }

  private void check() {
    long[] ids = new long[threads * CHECKED];
    onThreads(at -> {
      for (int i = 0; i < CHECKED; i++) {
        ids[at * CHECKED + i] = take.getAsLong();
      }
    });
    different = Arrays.stream(ids).distinct().count();
  }

  private void round() {
    AtomicLong count = new AtomicLong();
    AtomicLong all = new AtomicLong();
    over = false;
    long cpuBefore = SYSTEM.getProcessCpuTime();
    long began = System.nanoTime();
    Thread timer = new Thread(() -> {
      try {
        Thread.sleep(lengthMs);
      } catch (InterruptedException interrupted) {
        throw new IllegalStateException(interrupted);
      }
      over = true;
    });
    timer.start();
    onThreads(at -> {
      long mine = 0;
      long mixed = 0;
      for (; !over; mine += BUNCH) {
        for (int i = 0; i < BUNCH; i++) {
          mixed ^= take.getAsLong();
        }
      }
      count.addAndGet(mine);
      all.addAndGet(mixed);
    });
    double seconds = (System.nanoTime() - began) / 1e9;
    sum += all.get();
    rates.add(count.get() / seconds);
    cpu.add((double) (SYSTEM.getProcessCpuTime() - cpuBefore) / count.get());
  }

  private String told() {
    return String.format("{\"taken\": %d, \"different\": %d, \"rates\": %s, \"cpu\": %s, \"sum\": %d}",
        threads * CHECKED, different, rates, cpu, sum);
  }

  private static LongSupplier of(LocalGenerator local) {
    return () -> {
      try {
        return local.next();
      } catch (FirnException failure) {
        throw new IllegalStateException(failure);
      }
    };
  }

  public static void main(String[] words) throws Exception {
    int threads = Integer.parseInt(words[1]);
    int lengthMs = Integer.parseInt(words[3]);
    FirnClient client = new FirnClient(new Options(words[0]));
    MillisecondSnowflakeId cosid = new MillisecondSnowflakeId(1);
    Snowflake hutool = new Snowflake(1, 1);
    Map<String, Generators> all = new LinkedHashMap<>();
    all.put("firn", new Generators(threads, lengthMs, of(client.localGenerator("rates").open())));
    all.put("cosid", new Generators(threads, lengthMs, cosid::generate));
    all.put("hutool", new Generators(threads, lengthMs, hutool::nextId));
    for (Generators one : all.values()) {
      one.check();
      for (int i = 0; i < 3; i++) { // the compiler takes a second
        one.round();
      }
      one.rates.clear();
      one.cpu.clear();
    }
    for (int i = 0; i < Integer.parseInt(words[2]); i++) {
      all.values().forEach(Generators::round);
    }
    List<String> parts = new ArrayList<>();
    all.forEach((name, one) -> parts.add("\"" + name + "\": " + one.told()));
    System.out.println("{" + String.join(", ", parts) + "}");
    System.exit(0);
  }
}
