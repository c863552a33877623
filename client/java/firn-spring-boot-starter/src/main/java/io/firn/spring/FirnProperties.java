package io.firn.spring;

import io.firn.LocalTag;
import io.firn.Options;
import io.firn.Tls;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.springframework.boot.context.properties.ConfigurationProperties;

/** The properties {@code firn.*}. */
@ConfigurationProperties("firn")
public class FirnProperties {
  /** Addresses of servers: firn://seed,seed discovers the others, list://host:port,host:port names all. */
  private String servers;
  /** Tag of the ids that the generators for Hibernate and MyBatis-Plus take. Empty: the servers' default. */
  private String tag = "";
  /** UUID of the cluster. Default: that of the first server that answers. */
  private String clusterUuid = "";
  /** Rack whose healthy servers are preferred. */
  private Integer rack;
  /** Maximum time of a call. */
  private Duration deadline = Duration.ofMillis(200);
  /** Maximum time for one server's answer. */
  private Duration attemptLimit = Duration.ofMillis(80);
  /** Maximum requests per call. */
  private int attemptsMax = 3;
  /** Maximum connections per server. */
  private int connectionsMax = 64;
  /** Maximum servers that the client uses in a large cluster. 0: all. */
  private int serversMax = 16;
  /** Segment tags whose ids are prefetched. */
  private List<String> prefetchSegment = List.of();
  /** Snowflake tags whose ids are prefetched. */
  private List<String> prefetchSnowflake = List.of();
  private final TlsFiles tls = new TlsFiles();
  private final Lease lease = new Lease();

  /** The properties {@code firn.lease.*}. */
  public static class Lease {
    /** Name that operators see. If it is set, the program gets a generator with a leased machine id. */
    private String name;
    /** Rack of the machine id. Default: any. */
    private Integer rack;
    /** How far ahead of now the interval of the lease ends: how long the generator can do without servers. */
    private Duration ahead = Duration.ofSeconds(60);
    /** Maximum time to wait for the first lease. */
    private Duration timeout = Duration.ofSeconds(10);

    public String getName() {
      return name;
    }

    public void setName(String name) {
      this.name = name;
    }

    public Integer getRack() {
      return rack;
    }

    public void setRack(Integer rack) {
      this.rack = rack;
    }

    public Duration getAhead() {
      return ahead;
    }

    public void setAhead(Duration ahead) {
      this.ahead = ahead;
    }

    public Duration getTimeout() {
      return timeout;
    }

    public void setTimeout(Duration timeout) {
      this.timeout = timeout;
    }
  }

  /** The properties {@code firn.tls.*}. */
  public static class TlsFiles {
    /** Whether the client uses TLS for every server. */
    private boolean enabled;
    /** PEM file of certificate authorities. Default: those of the JVM. */
    private String ca;
    /** PEM file of the client's certificate. */
    private String cert;
    /** PEM file of the certificate's key, in PKCS 8. */
    private String key;
    /** Name in the servers' certificates. Default: the host of the server's address. */
    private String name;

    public boolean isEnabled() {
      return enabled;
    }

    public void setEnabled(boolean enabled) {
      this.enabled = enabled;
    }

    public String getCa() {
      return ca;
    }

    public void setCa(String ca) {
      this.ca = ca;
    }

    public String getCert() {
      return cert;
    }

    public void setCert(String cert) {
      this.cert = cert;
    }

    public String getKey() {
      return key;
    }

    public void setKey(String key) {
      this.key = key;
    }

    public String getName() {
      return name;
    }

    public void setName(String name) {
      this.name = name;
    }
  }

  Options options() {
    List<LocalTag> local = new ArrayList<>(Stream.concat(prefetchSegment.stream().map(LocalTag::segment),
        prefetchSnowflake.stream().map(LocalTag::snowflake)).toList());
    Options options = new Options(servers).clusterUuid(clusterUuid).deadline(deadline).attemptLimit(attemptLimit)
        .attemptsMax(attemptsMax).connectionsMax(connectionsMax).serversMax(serversMax).localRanges(local);
    if (rack != null) {
      options.rack(rack);
    }
    return tls.enabled ? options.tls(new Tls(tls.ca, tls.cert, tls.key, tls.name)) : options;
  }

  public String getServers() {
    return servers;
  }

  public void setServers(String servers) {
    this.servers = servers;
  }

  public String getTag() {
    return tag;
  }

  public void setTag(String tag) {
    this.tag = tag;
  }

  public String getClusterUuid() {
    return clusterUuid;
  }

  public void setClusterUuid(String clusterUuid) {
    this.clusterUuid = clusterUuid;
  }

  public Integer getRack() {
    return rack;
  }

  public void setRack(Integer rack) {
    this.rack = rack;
  }

  public Duration getDeadline() {
    return deadline;
  }

  public void setDeadline(Duration deadline) {
    this.deadline = deadline;
  }

  public Duration getAttemptLimit() {
    return attemptLimit;
  }

  public void setAttemptLimit(Duration attemptLimit) {
    this.attemptLimit = attemptLimit;
  }

  public int getAttemptsMax() {
    return attemptsMax;
  }

  public void setAttemptsMax(int attemptsMax) {
    this.attemptsMax = attemptsMax;
  }

  public int getConnectionsMax() {
    return connectionsMax;
  }

  public void setConnectionsMax(int connectionsMax) {
    this.connectionsMax = connectionsMax;
  }

  public int getServersMax() {
    return serversMax;
  }

  public void setServersMax(int serversMax) {
    this.serversMax = serversMax;
  }

  public List<String> getPrefetchSegment() {
    return prefetchSegment;
  }

  public void setPrefetchSegment(List<String> prefetchSegment) {
    this.prefetchSegment = prefetchSegment;
  }

  public List<String> getPrefetchSnowflake() {
    return prefetchSnowflake;
  }

  public void setPrefetchSnowflake(List<String> prefetchSnowflake) {
    this.prefetchSnowflake = prefetchSnowflake;
  }

  public TlsFiles getTls() {
    return tls;
  }

  public Lease getLease() {
    return lease;
  }
}
