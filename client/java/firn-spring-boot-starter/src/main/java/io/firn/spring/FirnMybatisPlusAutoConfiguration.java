package io.firn.spring;

import com.baomidou.mybatisplus.core.incrementer.IdentifierGenerator;
import io.firn.FirnClient;
import io.firn.FirnException;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** The identifiers of MyBatis-Plus ({@code IdType.ASSIGN_ID}) are ids of the tag {@code firn.tag}. */
@AutoConfiguration(after = FirnAutoConfiguration.class,
    beforeName = "com.baomidou.mybatisplus.autoconfigure.IdentifierGeneratorAutoConfiguration")
@ConditionalOnClass(name = "com.baomidou.mybatisplus.core.incrementer.IdentifierGenerator")
@ConditionalOnBean(FirnClient.class)
public class FirnMybatisPlusAutoConfiguration {
  @Bean
  @ConditionalOnMissingBean(IdentifierGenerator.class)
  IdentifierGenerator firnIdentifierGenerator(FirnClient client, FirnProperties properties) {
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
