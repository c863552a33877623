import io.firn.Attempt;
import io.firn.FirnClient;
import io.firn.FirnException;
import io.firn.LocalTag;
import io.firn.Options;
import java.util.List;

/** Takes ids with every kind of call, and prints events about servers.
 *
 * <p>java Example firn://127.0.0.1:7609 [TAG] */
public final class Example {
  public static void main(String[] arguments) throws InterruptedException {
    String tag = arguments.length > 1 ? arguments[1] : "";
    Options options = new Options(arguments[0]).deadlineMs(2000).onEvent(System.out::println)
        .localRanges(List.of(LocalTag.snowflake(tag)));
    try (FirnClient client = new FirnClient(options)) {
      System.out.println("one: " + client.nextId(tag));
      System.out.println("ten: " + client.nextIds(tag, 10));
      System.out.println("text: " + client.nextText(tag));

      // Four threads with prefetched ids.
      Thread[] threads = new Thread[4];
      for (int i = 0; i < threads.length; i++) {
        threads[i] = new Thread(() -> takeMany(client, tag));
        threads[i].start();
      }
      for (Thread thread : threads) {
        thread.join();
      }
      System.out.println("from memory: 4000");
    } catch (FirnException failure) {
      System.out.println(failure.kind() + " " + failure.reason());
      for (Attempt attempt : failure.attempts()) {
        System.out.println(attempt);
      }
      System.exit(1);
    }
  }

  private static void takeMany(FirnClient client, String tag) {
    try {
      for (int i = 0; i < 1000; i++) {
        client.nextId(tag);
      }
    } catch (FirnException failure) {
      System.out.println(failure.getMessage());
    }
  }
}
