package io.firn.spring;

import io.firn.Event;
import io.firn.FirnClient;
import io.firn.Options;
import java.util.function.UnaryOperator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;

/** A client, if {@code firn.servers} is set. It logs events of servers. */
@AutoConfiguration
@ConditionalOnProperty("firn.servers")
@EnableConfigurationProperties(FirnProperties.class)
public class FirnAutoConfiguration {
  private static final Logger LOG = LoggerFactory.getLogger(FirnClient.class);

  /** Changes the options of the client before it is created. */
  public interface OptionsCustomizer extends UnaryOperator<Options> {}

  @Bean
  @ConditionalOnMissingBean
  FirnClient firnClient(FirnProperties properties, ObjectProvider<OptionsCustomizer> customizers) {
    Options options = properties.options().onEvent(FirnAutoConfiguration::log);
    for (OptionsCustomizer one : customizers.orderedStream().toList()) {
      options = one.apply(options);
    }
    return new FirnClient(options);
  }

  private static void log(Event event) {
    switch (event.kind) {
      case "list", "healthy" -> LOG.info("{}", event);
      default -> LOG.warn("{}", event);
    }
  }
}
