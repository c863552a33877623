package io.firn.spring;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.hibernate.annotations.IdGeneratorType;

/**
 * Lets Hibernate take the identifiers of an entity from Firn.
 *
 * <pre>
 * &#64;Id
 * &#64;FirnId(tag = "order")
 * private Long id;
 * </pre>
 */
@IdGeneratorType(FirnIdGenerator.class)
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.FIELD, ElementType.METHOD})
public @interface FirnId {
  /** Tag of the ids. Default: that of the property {@code firn.tag}. */
  String tag() default "";
}
