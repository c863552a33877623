package io.firn.micrometer;

import io.firn.Counters;
import io.firn.FirnClient;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.FunctionTimer;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;

/**
 * The counters of a client, and its servers by their health, as meters of Micrometer: {@code firn.client.*}.
 *
 * <pre>
 * new FirnMetrics(client).bindTo(registry);
 * </pre>
 *
 * <p>Needs {@code io.micrometer:micrometer-core}, which the client does not bring along.
 */
public final class FirnMetrics implements MeterBinder {
  private static final List<String> HEALTH =
      List.of("healthy", "failing", "ejected", "disabled", "draining", "last resort", "quarantined");

  private final FirnClient client;
  private final Tags tags;

  /** Meters without further tags. */
  public FirnMetrics(FirnClient client) {
    this(client, Tags.empty());
  }

  /** Meters with these tags, such as one that tells several clients of a program apart. */
  public FirnMetrics(FirnClient client, Iterable<Tag> tags) {
    this.client = client;
    this.tags = Tags.of(tags);
  }

  @Override
  public void bindTo(MeterRegistry registry) {
    FunctionTimer.builder("firn.client.calls", client, one -> one.counters().calls,
            one -> one.counters().callNanos, TimeUnit.NANOSECONDS)
        .tags(tags).description("Calls to servers. Ids from memory need none.").register(registry);
    count(registry, "calls.failed", "Calls that failed without a refusal.", all -> all.failed);
    count(registry, "calls.refused", "Calls that a server refused.", all -> all.refused);
    count(registry, "attempts", "Requests that were sent.", all -> all.attempts);
    count(registry, "retries", "Requests that used the retry budget.", all -> all.retries);
    count(registry, "retries.denied", "Retries that the exhausted retry budget prevented.",
        all -> all.retriesDenied);
    count(registry, "attempt.timeouts", "Attempts without an answer in time.", all -> all.timeouts);
    count(registry, "invalid.answers", "Invalid answers.", all -> all.broken);
    count(registry, "connects", "Connections that were begun.", all -> all.connects);
    count(registry, "connects.failed", "Connections that failed before the server's status arrived.",
        all -> all.connectsFailed);
    count(registry, "lists", "Server lists that were accepted.", all -> all.lists);
    count(registry, "local.ids", "Ids from memory.", all -> all.localTaken);
    count(registry, "local.ids.missed", "Ids that were not in memory although their tag is prefetched.",
        all -> all.localMissed);
    for (String health : HEALTH) {
      Gauge.builder("firn.client.servers", client, one -> one.servers().stream()
              .filter(server -> server.health.equals(health)).count())
          .tags(tags).tag("health", health).description("Servers by their health.").register(registry);
    }
  }

  private void count(MeterRegistry registry, String name, String help, ToDoubleFunction<Counters> of) {
    FunctionCounter.builder("firn.client." + name, client, one -> of.applyAsDouble(one.counters()))
        .tags(tags).description(help).register(registry);
  }
}
