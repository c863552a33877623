import cn.hutool.core.lang.Snowflake;
import cn.hutool.core.util.IdUtil;
import io.firn.FirnClient;
import io.firn.LocalGenerator;
import io.firn.LocalGenerator.Interval;
import io.firn.LocalGenerator.MachineLease;
import io.firn.Options;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;

/** Calls Hutool as a program does whose generator has a leased machine id, by the adapter of client/GENERATORS.md. */
public final class LeasedCaller {
  private static final int CALLS = 10_000;

  /** Hutool's own generator, with the machine id of a lease. */
  private static void checkMachineLease(String servers) throws Exception {
    try (FirnClient client = new FirnClient(new Options(servers));
        MachineLease lease = client.localGenerator("number").openMachineLease(Duration.ofSeconds(60))) {
      int machine = lease.current().get().machineId;
      Snowflake own = new Snowflake(machine & 31, machine >> 5);
      long id = own.nextId();
      while (!isIn(lease.current().get(), own, id)) { // made before the interval begins
        Thread.sleep(1);
        id = own.nextId();
      }
      System.out.println((id >> 12 & 0x3ff) == machine ? "in the interval" : "another machine id");
    }
  }

  private static boolean isIn(Interval interval, Snowflake own, long id) {
    long ms = own.getGenerateDateTime(id);
    return interval.machineId == (own.getDataCenterId(id) << 5 | own.getWorkerId(id))
        && ms >= interval.from.toEpochMilli() && ms < interval.until.toEpochMilli();
  }

  public static void main(String[] arguments) throws Exception {
    checkMachineLease(arguments[0]);
    Snowflake hutool;
    try (FirnClient client = new FirnClient(new Options(arguments[0]));
        LocalGenerator ids = client.localGenerator("hutool").open(Duration.ofSeconds(60))) {
      LeasedSnowflake.install(ids);
      Set<Long> all = new HashSet<>();
      for (int i = 0; i < CALLS; i++) {
        all.add(IdUtil.getSnowflakeNextId());
      }
      System.out.println("different " + all.size() + " of " + CALLS);
      hutool = IdUtil.getSnowflake();
      long id = hutool.nextId();
      System.out.println("time " + hutool.getGenerateDateTime(id));
      boolean same = (hutool.getDataCenterId(id) << 5 | hutool.getWorkerId(id)) == ids.machineId().getAsInt();
      System.out.println(same ? "machine id of the lease" : "another machine id");
    }
    try {
      hutool.nextId();
    } catch (IllegalStateException failure) {
      System.out.println("failure " + failure.getCause().getClass().getSimpleName());
    }
  }
}
