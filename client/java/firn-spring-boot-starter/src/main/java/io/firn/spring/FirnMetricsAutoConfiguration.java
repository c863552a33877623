package io.firn.spring;

import io.firn.FirnClient;
import io.firn.micrometer.FirnMetrics;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** The meters {@code firn.client.*}, which Spring Boot binds to its registries. */
@AutoConfiguration(after = FirnAutoConfiguration.class)
@ConditionalOnClass(name = "io.micrometer.core.instrument.binder.MeterBinder")
@ConditionalOnBean(FirnClient.class)
public class FirnMetricsAutoConfiguration {
  @Bean
  @ConditionalOnMissingBean
  FirnMetrics firnMetrics(FirnClient client) {
    return new FirnMetrics(client);
  }
}
