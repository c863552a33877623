import java.io.FileInputStream;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;

/** Takes ids with Jedis: see redis_clients_test.py. */
final class JedisClient {
    static SSLSocketFactory trusting(String path) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null);
        try (FileInputStream file = new FileInputStream(path)) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context.getSocketFactory();
    }

    public static void main(String[] arguments) throws Exception {
        String ca = System.getenv("FIRN_CA");
        DefaultJedisClientConfig.Builder config = DefaultJedisClientConfig.builder()
            .protocol(arguments[2].equals("3") ? RedisProtocol.RESP3 : RedisProtocol.RESP2)
            .clientName("jedis").user(System.getenv("FIRN_USER")).password(System.getenv("FIRN_PASSWORD"));
        if (ca != null) config.ssl(true).sslSocketFactory(trusting(ca));
        int count = Integer.parseInt(arguments[3]);
        HostAndPort address = new HostAndPort(arguments[0], Integer.parseInt(arguments[1]));
        try (JedisPooled client = new JedisPooled(address, config.build())) {
            for (int i = 0; i < count; ++i) System.out.println(client.incr("order"));
            List<Response<Long>> ids = new ArrayList<>();
            try (Pipeline pipeline = client.pipelined()) {
                for (int i = 0; i < count; ++i) ids.add(pipeline.incr("order"));
                pipeline.sync();
            }
            for (Response<Long> id : ids) System.out.println(id.get());
            try (AbstractTransaction transaction = client.multi()) {
                for (int i = 0; i < count; ++i) transaction.incr("order");
                for (Object id : transaction.exec()) System.out.println(id);
            }
            try {
                client.incr("nothing");
            } catch (RuntimeException e) {
                System.out.println("refused: " + e.getMessage());
            }
        }
    }
}
