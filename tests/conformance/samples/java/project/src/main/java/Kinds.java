import io.firn.FirnClient;
import io.firn.FirnException;
import io.firn.LocalTag;
import io.firn.Options;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** Takes ids with each kind of call of the package. */
public final class Kinds {
  public static void main(String[] arguments) throws Exception {
    Options options = new Options(arguments[0]).deadlineMs(10_000).attemptLimitMs(5000)
        .localRanges(List.of(LocalTag.snowflake("default")));
    Set<Long> ids = new HashSet<>();
    try (FirnClient client = new FirnClient(options)) {
      client.ping();
      for (int i = 0; i < 5000; i++) {
        ids.add(client.nextId("default"));
        ids.add(client.nextIdAsync("default").join());
      }
      for (int i = 0; i < 100; i++) {
        ids.addAll(client.nextIds("default", 100));
        ids.addAll(client.nextIdsAsync("default", 100).join());
      }
      CompletableFuture<String> text = client.nextTextAsync("default");
      ids.add(Long.parseLong(text.join()));
      System.out.println(ids.size() == 30_001 ? "all different" : "only " + ids.size());
      try {
        client.nextIdAsync("nosuchtag").join();
      } catch (CompletionException failure) {
        System.out.println(((FirnException) failure.getCause()).reason());
      }
      System.out.println(client.counters().localTaken > 1000 ? "from memory" : "not from memory");
    }
  }
}
