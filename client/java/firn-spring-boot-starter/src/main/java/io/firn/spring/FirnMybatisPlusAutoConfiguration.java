package io.firn.spring;

import com.baomidou.mybatisplus.core.incrementer.IdentifierGenerator;
import io.firn.FirnClient;
import io.firn.FirnException;
import io.firn.LocalGenerator;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** The identifiers of MyBatis-Plus ({@code IdType.ASSIGN_ID}) are those of the generator with a leased machine id, if
 * there is one, and otherwise ids of the tag {@code firn.tag}. */
@AutoConfiguration(after = {FirnAutoConfiguration.class, FirnLeaseAutoConfiguration.class},
    beforeName = "com.baomidou.mybatisplus.autoconfigure.IdentifierGeneratorAutoConfiguration")
@ConditionalOnClass(name = "com.baomidou.mybatisplus.core.incrementer.IdentifierGenerator")
@ConditionalOnBean(FirnClient.class)
public class FirnMybatisPlusAutoConfiguration {
  @Bean
  @ConditionalOnMissingBean(IdentifierGenerator.class)
  IdentifierGenerator firnIdentifierGenerator(FirnClient client, FirnProperties properties,
      ObjectProvider<LocalGenerator> generator) {
    LocalGenerator local = generator.getIfAvailable();
    return local != null ? leased(local) : issued(client, properties);
  }

  private static IdentifierGenerator leased(LocalGenerator local) {
    return entity -> {
      try {
        return local.next();
      } catch (FirnException failure) {
        throw new IllegalStateException("cannot make an id: " + failure.getMessage(), failure);
      }
    };
  }

  private static IdentifierGenerator issued(FirnClient client, FirnProperties properties) {
    String tag = properties.getTag();
    return entity -> {
      try {
        return client.nextId(tag);
      } catch (FirnException failure) {
        throw new IllegalStateException("cannot take an id of tag '" + tag + "': " + failure.getMessage(), failure);
      }
    };
  }
}
