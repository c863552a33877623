import cn.hutool.core.lang.Snowflake;
import cn.hutool.core.util.IdUtil;
import io.firn.FirnClient;
import io.firn.LocalGenerator;
import io.firn.Options;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;

/** Calls Hutool as a program does whose generator has a leased machine id, by the adapter of client/GENERATORS.md. */
public final class LeasedCaller {
  private static final int CALLS = 10_000;

  public static void main(String[] arguments) throws Exception {
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
