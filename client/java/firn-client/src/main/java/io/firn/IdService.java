package io.firn;

import java.util.List;

/**
 * The Dubbo interface of a Firn server that runs with {@code --dubbo}. A Dubbo consumer refers to it; it needs no
 * other class of this package. An empty tag means the server's default tag.
 */
public interface IdService {
  /** Returns the next id of the tag. */
  long nextId(String tag);

  /** Returns {@code count} ids of the tag, at least 1. */
  List<Long> nextIds(String tag, int count);

  /** Returns the next id of the tag in the tag's text form. */
  String nextText(String tag);
}
