package io.firn.spring;

import io.firn.FirnClient;
import io.firn.FirnException;
import io.firn.LocalGenerator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;

/** A generator with a leased machine id, if {@code firn.lease.name} is set. It logs leases that are lost. */
@AutoConfiguration(after = FirnAutoConfiguration.class)
@ConditionalOnBean(FirnClient.class)
@ConditionalOnProperty("firn.lease.name")
public class FirnLeaseAutoConfiguration {
  private static final Logger LOG = LoggerFactory.getLogger(LocalGenerator.class);

  @Bean
  @ConditionalOnMissingBean
  LocalGenerator firnLocalGenerator(FirnClient client, FirnProperties properties) throws FirnException {
    FirnProperties.Lease lease = properties.getLease();
    LocalGenerator.Builder generator = client.localGenerator(lease.getName()).ahead(lease.getAhead())
        .onLost(reason -> LOG.warn("lease lost: {}", reason));
    if (lease.getRack() != null) {
      generator.rack(lease.getRack());
    }
    return generator.open(lease.getTimeout());
  }
}
