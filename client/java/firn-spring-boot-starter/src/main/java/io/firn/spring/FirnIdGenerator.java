package io.firn.spring;

import io.firn.FirnClient;
import io.firn.FirnException;
import io.firn.LocalGenerator;
import java.util.EnumSet;
import java.util.Map;
import java.util.function.Supplier;
import org.hibernate.engine.spi.SharedSessionContractImplementor;
import org.hibernate.generator.BeforeExecutionGenerator;
import org.hibernate.generator.EventType;
import org.hibernate.id.IdentifierGenerationException;

/** Takes the identifiers of {@link FirnId} from the client in the property {@code firn.client} of the session factory,
 * which contains a {@link FirnClient} or a {@link Supplier} of one. Where the annotation names no tag, they come from the
 * {@link LocalGenerator} in {@code firn.generator}, if that contains one. The starter sets both. */
public class FirnIdGenerator implements BeforeExecutionGenerator {
  static final String CLIENT = "firn.client";
  static final String GENERATOR = "firn.generator";
  static final String TAG = "firn.tag";
  private static final long serialVersionUID = 1;

  private final String tag;

  /** Called by Hibernate. */
  public FirnIdGenerator(FirnId id) {
    tag = id.tag();
  }

  @Override
  public Object generate(SharedSessionContractImplementor session, Object owner, Object value, EventType event) {
    Map<String, Object> properties = session.getFactory().getProperties();
    if (tag.isEmpty() && found(properties, GENERATOR) instanceof LocalGenerator local) {
      return nextOf(local);
    }
    if (!(found(properties, CLIENT) instanceof FirnClient firn)) {
      throw new IdentifierGenerationException("the session factory's property " + CLIENT + " is not a FirnClient;"
          + " set firn.servers, or set that property");
    }
    String asked = tag.isEmpty() ? String.valueOf(properties.getOrDefault(TAG, "")) : tag;
    try {
      return firn.nextId(asked);
    } catch (FirnException failure) {
      throw new IdentifierGenerationException("cannot take an id of tag '" + asked + "': " + failure.getMessage(),
          failure);
    }
  }

  private static Object found(Map<String, Object> properties, String name) {
    Object value = properties.get(name);
    return value instanceof Supplier<?> supplier ? supplier.get() : value;
  }

  private static long nextOf(LocalGenerator local) {
    try {
      return local.next();
    } catch (FirnException failure) {
      throw new IdentifierGenerationException("cannot make an id: " + failure.getMessage(), failure);
    }
  }

  @Override
  public EnumSet<EventType> getEventTypes() {
    return EnumSet.of(EventType.INSERT);
  }
}
