package io.firn;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Reads values of Thrift's binary protocol from a frame. Compares every length with the bytes that are left before
 * it allocates memory for it. */
final class Reader {
  /** A frame that does not follow the protocol. */
  static final class Malformed extends Exception {
    private static final long serialVersionUID = 1;

    Malformed(String why) {
      super(why, null, false, false);
    }
  }

  /** Reads one field of a struct into `into`. Returns false if it has another type or is unknown: it is skipped. */
  interface Fields<T> {
    boolean read(Reader reader, T into, int id, byte type) throws Malformed;
  }

  static final byte STOP = 0;
  static final byte BOOL = 2;
  static final byte BYTE = 3;
  static final byte DOUBLE = 4;
  static final byte I16 = 6;
  static final byte I32 = 8;
  static final byte I64 = 10;
  static final byte STRING = 11;
  static final byte STRUCT = 12;
  static final byte MAP = 13;
  static final byte SET = 14;
  static final byte LIST = 15;
  private static final int DEPTH_MAX = 32;
  private static final int FIRST_ELEMENTS = 64;

  private final ByteBuffer rest;

  Reader(byte[] frame) {
    rest = ByteBuffer.wrap(frame);
  }

  private void need(long bytes) throws Malformed {
    if (bytes > rest.remaining()) {
      throw new Malformed("a value is longer than its frame");
    }
  }

  byte i8() throws Malformed {
    need(1);
    return rest.get();
  }

  boolean bool() throws Malformed {
    return i8() != 0;
  }

  int i32() throws Malformed {
    need(4);
    return rest.getInt();
  }

  long i64() throws Malformed {
    need(8);
    return rest.getLong();
  }

  String string() throws Malformed {
    int size = size();
    need(size);
    String text = new String(rest.array(), rest.position(), size, StandardCharsets.UTF_8);
    rest.position(rest.position() + size);
    return text;
  }

  private int size() throws Malformed {
    int size = i32();
    if (size < 0) {
      throw new Malformed("a length is negative");
    }
    return size;
  }

  /** Returns the number of elements of a list, which follow. */
  private int count(byte type) throws Malformed {
    int count = size();
    if (count > rest.remaining() / leastBytes(type)) {
      throw new Malformed("a list has more elements than its frame can contain");
    }
    return count;
  }

  <T> T struct(T into, Fields<T> fields) throws Malformed {
    for (byte type = i8(); type != STOP; type = i8()) {
      need(2);
      int id = rest.getShort();
      if (!fields.read(this, into, id, type)) {
        skip(type, 0);
      }
    }
    return into;
  }

  <T> List<T> structs(java.util.function.Supplier<T> make, Fields<T> fields) throws Malformed {
    listOf(STRUCT);
    int count = count(STRUCT);
    // An element can take more memory than bytes of the frame, so memory grows with what was read.
    List<T> elements = new ArrayList<>(Math.min(count, FIRST_ELEMENTS));
    for (int i = 0; i < count; i++) {
      elements.add(struct(make.get(), fields));
    }
    return elements;
  }

  long[] longs() throws Malformed {
    listOf(I64);
    long[] elements = new long[count(I64)];
    rest.asLongBuffer().get(elements);
    rest.position(rest.position() + 8 * elements.length);
    return elements;
  }

  private void listOf(byte type) throws Malformed {
    if (i8() != type) {
      throw new Malformed("a list has elements of another type");
    }
  }

  void skip(byte type, int depth) throws Malformed {
    if (depth > DEPTH_MAX) {
      throw new Malformed("its values are nested too deeply");
    }
    switch (type) {
      case STRING:
        skipBytes(size());
        break;
      case STRUCT:
        for (byte field = i8(); field != STOP; field = i8()) {
          skipBytes(2);
          skip(field, depth + 1);
        }
        break;
      case LIST:
      case SET:
        byte element = i8();
        skipMany(count(element), depth, element);
        break;
      case MAP:
        skipMap(depth);
        break;
      default:
        skipBytes(leastBytes(type));
    }
  }

  private void skipMap(int depth) throws Malformed {
    byte key = i8();
    byte value = i8();
    int count = size();
    if (count == 0) {
      return; // the types of an empty map may be 0
    }
    if (count > rest.remaining() / (leastBytes(key) + leastBytes(value))) {
      throw new Malformed("a map has more elements than its frame can contain");
    }
    skipMany(count, depth, key, value);
  }

  private void skipMany(int count, int depth, byte... types) throws Malformed {
    for (int i = 0; i < count; i++) {
      for (byte type : types) {
        skip(type, depth + 1);
      }
    }
  }

  private void skipBytes(int bytes) throws Malformed {
    need(bytes);
    rest.position(rest.position() + bytes);
  }

  /** Returns the least number of bytes of a value of the type. */
  private static int leastBytes(byte type) throws Malformed {
    switch (type) {
      case BOOL:
      case BYTE:
      case STRUCT:
        return 1;
      case I16:
        return 2;
      case I32:
      case STRING:
        return 4;
      case LIST:
      case SET:
        return 5;
      case MAP:
        return 6;
      case DOUBLE:
      case I64:
        return 8;
      default:
        throw new Malformed("it has a value of an unknown type");
    }
  }
}
