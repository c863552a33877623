package io.firn.spring;

import io.firn.FirnClient;
import org.springframework.boot.actuate.health.Health;
import org.springframework.boot.actuate.health.HealthIndicator;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;

/** The health indicator {@code firn}, for Spring Boot 3. */
@AutoConfiguration(after = FirnAutoConfiguration.class)
@ConditionalOnClass(name = "org.springframework.boot.actuate.health.HealthIndicator")
@ConditionalOnBean(FirnClient.class)
@ConditionalOnProperty(name = "management.health.firn.enabled", matchIfMissing = true)
public class FirnActuatorHealthAutoConfiguration {
  @Bean
  HealthIndicator firnHealthIndicator(FirnClient client) {
    return () -> {
      FirnReport report = FirnReport.of(client);
      Health.Builder health = report.healthy() ? Health.up() : Health.down().withDetail("fault", report.fault());
      return health.withDetail("servers", report.servers()).build();
    };
  }
}
