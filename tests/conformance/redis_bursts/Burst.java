import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.api.StatefulRedisConnection;
import java.util.ArrayList;
import java.util.List;

/** Bursts of INCR by Lettuce: see bursts.py. */
final class Burst {
  public static void main(String[] arguments) throws Exception {
    int calls = Integer.parseInt(arguments[1]);
    int rounds = Integer.parseInt(arguments[2]);
    RedisClient client = RedisClient.create("redis://127.0.0.1:" + arguments[0]);
    try (StatefulRedisConnection<String, String> connection = client.connect()) {
      for (int round = 0; round < rounds; ++round) {
        long began = System.nanoTime();
        List<RedisFuture<Long>> all = new ArrayList<>();
        for (int i = 0; i < calls; ++i) {
          all.add(connection.async().incr("default"));
        }
        int failed = 0;
        for (RedisFuture<Long> one : all) {
          failed += one.handle((id, fault) -> fault == null ? 0 : 1).toCompletableFuture().join();
        }
        System.out.println(failed + " " + (System.nanoTime() - began) / 1e6);
      }
    } finally {
      client.shutdown();
    }
  }
}
