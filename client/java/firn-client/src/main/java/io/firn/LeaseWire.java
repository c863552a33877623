package io.firn;

import io.firn.Reader.Malformed;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;

/** The requests and answers of firn.thrift about leases of machine ids. */
final class LeaseWire {
  /** Why a server does not grant, extend or end a lease. */
  enum Fault {
    UNKNOWN_LEASE, OUTDATED, REVOKED, ANOTHER_SERVERS, NO_LEASES;

    private static final Fault[] ALL = values();

    /** The contract's numbers start at 1; a number that is newer than this client means NO_LEASES. */
    static Fault of(int number) {
      return number > 0 && number <= ALL.length ? ALL[number - 1] : NO_LEASES;
    }
  }

  /** A refusal that is about leases only. */
  static final class Refusal {
    int fault;
    String message = "";
    String server = "";
  }

  /** The terms of a lease: the program may issue the ids {@code baseBits | tick << tickShift | sequence <<
   * sequenceShift} for every tick in [fromTick, untilTick) and every sequence in [sequenceFrom, sequenceFrom +
   * sequenceCount). */
  static final class Terms {
    String lease = ""; // secret
    long number;
    int machine;
    int worker;
    int rack;
    long baseBits;
    int tickShift;
    int sequenceShift;
    int sequenceBits;
    long sequenceFrom;
    long sequenceCount;
    int tickMs;
    long epochMs;
    long fromTick;
    long untilTick;
    int renewInMs;
    boolean ending;
    String server = "";

    /** Returns a sentence if no id may be issued under these terms; otherwise null. */
    String fault() {
      if (!named()) {
        return "its lease has no name, or one of more than " + LEASE_MAX + " characters";
      }
      if (machine < 0) {
        return "machine id " + machine + " is negative";
      }
      if (fromTick < 0 || untilTick <= fromTick) {
        return "its ticks from " + fromTick + " to " + untilTick + " are not an interval";
      }
      if (tickMs < 1 || tickMs > TICK_MS_MAX || epochMs < 0 || epochMs > TIME_MS_MAX
          || untilTick > (TIME_MS_MAX - epochMs) / tickMs) {
        return "its ticks of " + tickMs + " ms since " + epochMs + " ms end after the year 2200";
      }
      return faultOfBits();
    }

    private String faultOfBits() {
      if (tickShift < 0 || tickShift > 62 || sequenceShift < 0 || sequenceBits < 0
          || sequenceShift > 63 - Math.min(sequenceBits, 63)) {
        return "a field of its ids exceeds 63 bits";
      }
      if (sequenceFrom < 0 || sequenceCount < 1 || sequenceCount > (1L << sequenceBits) - sequenceFrom) {
        return sequenceCount + " sequences from " + sequenceFrom + " do not fit into " + sequenceBits + " bits";
      }
      int tickBits = 64 - Long.numberOfLeadingZeros(untilTick - 1);
      if (tickShift + tickBits > 63 || tickBits + sequenceBits > 62) {
        return "tick " + untilTick + " does not fit into its ids";
      }
      long ticks = ((1L << tickBits) - 1) << tickShift;
      long sequences = ((1L << sequenceBits) - 1) << sequenceShift;
      return (baseBits & (ticks | sequences)) != 0 || (ticks & sequences) != 0
          ? "the fields of its ids overlap" : null;
    }

    /** Returns whether these terms can extend that lease: only the interval, its renewal time and `ending` may differ. */
    boolean extend(Terms before) {
      return lease.equals(before.lease) && machine == before.machine && baseBits == before.baseBits
          && sequenceFrom == before.sequenceFrom && sequenceCount == before.sequenceCount && sameLayout(before)
          && untilTick >= before.untilTick;
    }

    boolean sameLayout(Terms other) {
      return epochMs == other.epochMs && tickMs == other.tickMs && tickShift == other.tickShift
          && sequenceShift == other.sequenceShift && sequenceBits == other.sequenceBits;
    }

    /** Returns whether a request can name this lease. */
    boolean named() {
      return !lease.isEmpty() && lease.length() <= LEASE_MAX;
    }

    /** Returns the wall time at which the tick begins. */
    long startOf(long tick) {
      return epochMs + tick * tickMs;
    }
  }

  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9._:/@-]{1,64}"); // servers check the same
  private static final int LEASE_MAX = 1000;
  private static final int TICK_MS_MAX = 60_000;
  private static final long TIME_MS_MAX = 7_258_118_400_000L; // 2200-01-01

  static final Wire.Result<Terms> TERMS =
      (reader, type) -> type == Reader.STRUCT ? reader.struct(new Terms(), LeaseWire::terms) : null;

  private LeaseWire() {}

  /** Returns a sentence if no lease may have this name; otherwise null. */
  static String faultOfName(String name) {
    return NAME.matcher(name).matches() ? null : "the name is '" + Failure.printable(name)
        + "'; it must have 1 to 64 letters, digits or characters of -_.:/@";
  }

  // --- requests -----------------------------------------------------------------------------------

  static byte[] ask(String token, String name, long clockMs, Integer aheadMs, Integer rack) {
    return argument(token, name, clockMs, aheadMs, rack);
  }

  static byte[] renewal(String lease, String turn, String acknowledged, long clockMs, Integer aheadMs) {
    return argument(lease, turn, acknowledged, clockMs, aheadMs);
  }

  static byte[] end(String lease, String turn, Long usedTick) {
    return argument(lease, turn, usedTick);
  }

  /** Returns the argument 1 of a method: a struct whose field n is the n-th value, and absent if that is null. */
  private static byte[] argument(Object... values) {
    int size = 16;
    for (Object value : values) {
      size += 16 + (value instanceof String ? 3 * ((String) value).length() : 0);
    }
    ByteBuffer out = ByteBuffer.allocate(size);
    Wire.field(out, Reader.STRUCT, 1);
    for (int i = 0; i < values.length; i++) {
      if (values[i] instanceof String) {
        byte[] text = ((String) values[i]).getBytes(StandardCharsets.UTF_8);
        Wire.field(out, Reader.STRING, i + 1).putInt(text.length).put(text);
      } else if (values[i] instanceof Integer) {
        Wire.field(out, Reader.I32, i + 1).putInt((Integer) values[i]);
      } else if (values[i] != null) {
        Wire.field(out, Reader.I64, i + 1).putLong((Long) values[i]);
      }
    }
    out.put(Reader.STOP);
    return java.util.Arrays.copyOf(out.array(), out.position());
  }

  // --- fields of structs --------------------------------------------------------------------------

  private static boolean terms(Reader reader, Terms terms, int id, byte type) throws Malformed {
    if (id == 1 && type == Reader.STRING) {
      terms.lease = reader.string();
    } else if (id == 18 && type == Reader.STRING) {
      terms.server = reader.string();
    } else if (id == 17 && type == Reader.BOOL) {
      terms.ending = reader.bool();
    } else {
      return type == Reader.I32 ? shortNumber(reader, terms, id) : type == Reader.I64 && longNumber(reader, terms, id);
    }
    return true;
  }

  private static boolean shortNumber(Reader reader, Terms terms, int id) throws Malformed {
    switch (id) {
      case 3:
        terms.machine = reader.i32();
        return true;
      case 4:
        terms.worker = reader.i32();
        return true;
      case 5:
        terms.rack = reader.i32();
        return true;
      case 7:
        terms.tickShift = reader.i32();
        return true;
      case 8:
        terms.sequenceShift = reader.i32();
        return true;
      case 9:
        terms.sequenceBits = reader.i32();
        return true;
      case 12:
        terms.tickMs = reader.i32();
        return true;
      case 16:
        terms.renewInMs = reader.i32();
        return true;
      default:
        return false;
    }
  }

  private static boolean longNumber(Reader reader, Terms terms, int id) throws Malformed {
    switch (id) {
      case 2:
        terms.number = reader.i64();
        return true;
      case 6:
        terms.baseBits = reader.i64();
        return true;
      case 10:
        terms.sequenceFrom = reader.i64();
        return true;
      case 11:
        terms.sequenceCount = reader.i64();
        return true;
      case 13:
        terms.epochMs = reader.i64();
        return true;
      case 14:
        terms.fromTick = reader.i64();
        return true;
      case 15:
        terms.untilTick = reader.i64();
        return true;
      default:
        return false;
    }
  }

  static boolean refusal(Reader reader, Refusal refusal, int id, byte type) throws Malformed {
    if (id == 1 && type == Reader.I32) {
      refusal.fault = reader.i32();
    } else if (id == 2 && type == Reader.STRING) {
      refusal.message = reader.string();
    } else if (id == 3 && type == Reader.STRING) {
      refusal.server = reader.string();
    } else {
      return false;
    }
    return true;
  }
}
