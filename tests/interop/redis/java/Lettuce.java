import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.protocol.ProtocolVersion;
import java.io.File;
import java.util.ArrayList;
import java.util.List;

/** Takes ids with Lettuce: see redis_clients_test.py. */
final class Lettuce {
    public static void main(String[] arguments) throws Exception {
        RedisURI uri = RedisURI.create(arguments[0], Integer.parseInt(arguments[1]));
        String ca = System.getenv("FIRN_CA");
        String user = System.getenv("FIRN_USER");
        uri.setClientName("lettuce");
        if (user != null) {
            uri.setUsername(user);
            uri.setPassword(System.getenv("FIRN_PASSWORD").toCharArray());
        }
        ClientOptions.Builder options = ClientOptions.builder().protocolVersion(
            arguments[2].equals("3") ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2);
        if (ca != null) {
            uri.setSsl(true);
            options.sslOptions(SslOptions.builder().jdkSslProvider().trustManager(new File(ca)).build());
        }
        int count = Integer.parseInt(arguments[3]);
        RedisClient client = RedisClient.create(uri);
        client.setOptions(options.build());
        try (StatefulRedisConnection<String, String> connection = client.connect()) {
            for (int i = 0; i < count; ++i) System.out.println(connection.sync().incr("order"));
            List<RedisFuture<Long>> ids = new ArrayList<>();
            for (int i = 0; i < count; ++i) ids.add(connection.async().incr("order"));
            for (RedisFuture<Long> id : ids) System.out.println(id.get());
            connection.sync().multi();
            for (int i = 0; i < count; ++i) connection.async().incr("order");
            for (Object id : connection.sync().exec()) System.out.println(id);
            try {
                connection.sync().incr("nothing");
            } catch (RuntimeException e) {
                System.out.println("refused: " + e.getMessage());
            }
        } finally {
            client.shutdown();
        }
    }
}
