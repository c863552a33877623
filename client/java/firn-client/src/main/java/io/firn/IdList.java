package io.firn;

import java.util.AbstractList;
import java.util.RandomAccess;

/** Ids in a list, without an object for each. */
final class IdList extends AbstractList<Long> implements RandomAccess {
  private final long[] ids;

  IdList(long[] ids) {
    this.ids = ids;
  }

  @Override
  public Long get(int index) {
    return ids[index];
  }

  @Override
  public int size() {
    return ids.length;
  }
}
