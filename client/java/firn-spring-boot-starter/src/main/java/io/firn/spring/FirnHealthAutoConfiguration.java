package io.firn.spring;

import io.firn.FirnClient;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.annotation.Bean;

/** The health indicator {@code firn}, for Spring Boot 4. */
@AutoConfiguration(after = FirnAutoConfiguration.class)
@ConditionalOnClass(name = "org.springframework.boot.health.contributor.HealthIndicator")
@ConditionalOnBean(FirnClient.class)
@ConditionalOnProperty(name = "management.health.firn.enabled", matchIfMissing = true)
public class FirnHealthAutoConfiguration {
  @Bean
  HealthIndicator firnHealthIndicator(FirnClient client) {
    return () -> {
      FirnReport report = FirnReport.of(client);
      Health.Builder health = report.healthy() ? Health.up() : Health.down().withDetail("fault", report.fault());
      return health.withDetail("servers", report.servers()).build();
    };
  }
}
