import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.exceptions.JedisConnectionException;

/** Calls a server again after it has closed idle connections: see redis_clients_test.py. */
final class IdleJedis {
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        Jedis plain = new Jedis("127.0.0.1", port);  // its close() would fail
        try (JedisPooled pooled = Page.client("127.0.0.1", port)) {
            System.out.println(pooled.incr("order") + " " + plain.incr("order"));
            System.in.read();
            for (int i = 0; i < 2; ++i) {
                System.out.println("pooled: " + pooled.incr("order"));
                try {
                    System.out.println("plain: " + plain.incr("order"));
                } catch (JedisConnectionException e) {
                    System.out.println("plain: failed");
                }
            }
        }
    }
}
