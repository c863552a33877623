import cn.hutool.core.lang.Snowflake;
import cn.hutool.core.util.IdUtil;
import io.firn.FirnClient;
import io.firn.Options;
import java.util.HashSet;
import java.util.Set;

/** Calls Hutool as a program does that has installed the adapter of client/GENERATORS.md. */
public final class Caller {
  private static final int CALLS = 1000;

  public static void main(String[] arguments) throws Exception {
    long old = IdUtil.getSnowflakeNextId();
    Options options = new Options(arguments[0]).deadlineMs(60_000).attemptLimitMs(20_000);
    try (FirnClient client = new FirnClient(options)) {
      FirnSnowflake.install(client, "default");
      Set<Long> ids = new HashSet<>();
      ids.add(old);
      for (int i = 0; i < CALLS; i++) {
        ids.add(IdUtil.getSnowflakeNextId());
        ids.add(Long.parseLong(IdUtil.getSnowflakeNextIdStr()));
      }
      System.out.println("different " + ids.size() + " of " + (2 * CALLS + 1));
      Snowflake generator = IdUtil.getSnowflake();
      long id = generator.nextId();
      System.out.println("time " + generator.getGenerateDateTime(id));
      System.out.println("calls " + client.counters().calls);
    }
    try {
      IdUtil.getSnowflakeNextId();
    } catch (IllegalStateException failure) {
      System.out.println("failure " + failure.getCause().getClass().getSimpleName());
    }
  }
}
