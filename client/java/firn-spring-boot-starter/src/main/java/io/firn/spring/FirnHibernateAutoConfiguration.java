package io.firn.spring;

import io.firn.FirnClient;
import io.firn.LocalGenerator;
import java.util.function.Supplier;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;
import org.springframework.orm.jpa.AbstractEntityManagerFactoryBean;

/** Gives the client to the session factories of Hibernate, where {@link FirnId} needs it. */
@AutoConfiguration(after = FirnAutoConfiguration.class)
@ConditionalOnClass(name = {"org.hibernate.annotations.IdGeneratorType",
    "org.springframework.orm.jpa.AbstractEntityManagerFactoryBean"})
@ConditionalOnProperty("firn.servers")
public class FirnHibernateAutoConfiguration {
  @Bean
  static BeanPostProcessor firnSessionFactories(ObjectProvider<FirnClient> client,
      ObjectProvider<LocalGenerator> generator, Environment environment) {
    return new BeanPostProcessor() {
      @Override
      public Object postProcessBeforeInitialization(Object bean, String name) {
        if (bean instanceof AbstractEntityManagerFactoryBean factory) {
          Supplier<FirnClient> later = client::getObject; // the client is created after this
          Supplier<LocalGenerator> leased = generator::getIfAvailable;
          factory.getJpaPropertyMap().put(FirnIdGenerator.CLIENT, later);
          factory.getJpaPropertyMap().put(FirnIdGenerator.GENERATOR, leased);
          factory.getJpaPropertyMap().put(FirnIdGenerator.TAG, environment.getProperty("firn.tag", ""));
        }
        return bean;
      }
    };
  }
}
