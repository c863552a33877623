package io.firn.spring;

import io.firn.FirnClient;
import io.firn.FirnException;
import java.util.EnumSet;
import java.util.Map;
import java.util.function.Supplier;
import org.hibernate.engine.spi.SharedSessionContractImplementor;
import org.hibernate.generator.BeforeExecutionGenerator;
import org.hibernate.generator.EventType;
import org.hibernate.id.IdentifierGenerationException;

/** Takes the identifiers of {@link FirnId} from the client in the property {@code firn.client} of the session factory,
 * which contains a {@link FirnClient} or a {@link Supplier} of one. The starter sets it. */
public class FirnIdGenerator implements BeforeExecutionGenerator {
  static final String CLIENT = "firn.client";
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
    Object found = properties.get(CLIENT);
    Object client = found instanceof Supplier<?> supplier ? supplier.get() : found;
    if (!(client instanceof FirnClient firn)) {
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

  @Override
  public EnumSet<EventType> getEventTypes() {
    return EnumSet.of(EventType.INSERT);
  }
}
