package io.firn;

import io.firn.Reader.Fields;
import io.firn.Reader.Malformed;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** The requests and answers of firn.thrift in Thrift's framed binary protocol. */
final class Wire {
  /** Reads the result of a method, of this type; null if the contract gives the method another type. */
  interface Result<T> {
    T read(Reader reader, byte type) throws Malformed;

    /** Returns the result that an answer without a result means; null if each has one. */
    default T ifAbsent() {
      return null;
    }
  }

  /** Ids in compact form: first, first + stride, ... */
  static final class Run {
    long first;
    int count;
    long stride;

    /** Returns the last id. The run must not be empty or overflow. */
    long last() {
      return first + (count - 1L) * stride;
    }
  }

  /** The state of a server. */
  enum State { UNKNOWN, NOT_READY, READY, OFFLINE, DRAINING }

  /** A tag in a server's status. */
  static final class TagStatus {
    String tag = "";
    String strategy = "";
    boolean asIssued;
  }

  /** What a client needs of a server's status. */
  static final class Status {
    String clusterUuid = "";
    String layout = "";
    State state = State.UNKNOWN;
    long wallMs;
    List<TagStatus> tags = List.of();
  }

  /** A server in a list. */
  static final class Entry {
    String address = "";
    int rack;
    int weight;
    boolean online;
    State state = State.UNKNOWN;
    boolean tls;
  }

  /** A list of servers. */
  static final class ServerList {
    long version;
    List<Entry> servers = List.of();
    int askAgainMs;
  }

  private static final class Refusal {
    int reason;
    String message = "";
    int retryAfterMs;
    boolean anotherMayHelp;
  }

  private static final class Fault {
    String message = "";
    int type;
  }

  static final int FRAME_MAX = 16 << 20;
  private static final int VERSION = 0x80010000;
  private static final int CALL = 1;
  private static final int REPLY = 2;
  private static final int EXCEPTION = 3;
  private static final int UNKNOWN_METHOD = 1;

  static final Result<Long> ID = (reader, type) -> type == Reader.I64 ? reader.i64() : null;
  static final Result<long[]> IDS = (reader, type) -> type == Reader.LIST ? reader.longs() : null;
  static final Result<List<Run>> RUNS =
      (reader, type) -> type == Reader.LIST ? reader.structs(Run::new, Wire::run) : null;
  static final Result<String> TEXT = (reader, type) -> type == Reader.STRING ? reader.string() : null;
  static final Result<Status> STATUS =
      (reader, type) -> type == Reader.STRUCT ? reader.struct(new Status(), Wire::status) : null;
  /** The result of a method that returns nothing. */
  static final Result<Boolean> NOTHING = new Result<>() {
    @Override
    public Boolean read(Reader reader, byte type) {
      return null;
    }

    @Override
    public Boolean ifAbsent() {
      return true;
    }
  };
  static final Result<ServerList> SERVERS =
      (reader, type) -> type == Reader.STRUCT ? reader.struct(new ServerList(), Wire::serverList) : null;

  private Wire() {}

  // --- requests -----------------------------------------------------------------------------------

  /** Returns the request as a frame with its length. `known` is the version of a list, and -1 without one; a count
   * of 0 is none. */
  static byte[] request(Ask<?> ask, int sequence) {
    byte[] method = ask.method.getBytes(StandardCharsets.US_ASCII);
    byte[] tag = ask.tag.getBytes(StandardCharsets.UTF_8);
    ByteBuffer out = ByteBuffer.allocate(64 + method.length + tag.length
        + (ask.struct == null ? 0 : ask.struct.length));
    out.putInt(0).putInt(VERSION | CALL).putInt(method.length).put(method).putInt(sequence);
    switch (ask.form) {
      case NOTHING:
        break;
      case KNOWN:
        field(out, Reader.I64, 1).putLong(ask.number);
        break;
      case STRUCT:
        out.put(ask.struct);
        break;
      default:
        field(out, Reader.STRING, 1).putInt(tag.length).put(tag);
        if (ask.form == Ask.Form.TAG_AND_I32) {
          field(out, Reader.I32, 2).putInt((int) ask.number);
        } else if (ask.form == Ask.Form.TAG_AND_I64) {
          field(out, Reader.I64, 2).putLong(ask.number);
        }
    }
    out.put(Reader.STOP).putInt(0, out.position() - 4);
    return java.util.Arrays.copyOf(out.array(), out.position());
  }

  static ByteBuffer field(ByteBuffer out, byte type, int id) {
    return out.put(type).putShort((short) id);
  }

  // --- answers ------------------------------------------------------------------------------------

  /** Returns the size of a frame, which its first four bytes give. */
  static int frameSize(int head) throws Failure {
    if (head >>> 16 == 0x1503) {
      throw new Failure(Attempt.End.BROKEN, "it speaks TLS");
    }
    if (head <= 0 || head > FRAME_MAX) {
      throw new Failure(Attempt.End.BROKEN, "it does not speak Thrift");
    }
    return head;
  }

  /** Returns the answer in a frame without its length; throws the refusal. */
  static <T> T answer(byte[] frame, Ask<T> ask, int sequence) throws Failure {
    try {
      return parse(new Reader(frame), ask, sequence);
    } catch (Malformed fault) {
      throw new Failure(Attempt.End.BROKEN, "its answer cannot be read: " + fault.getMessage());
    }
  }

  private static <T> T parse(Reader reader, Ask<T> ask, int sequence) throws Malformed, Failure {
    int version = reader.i32();
    if ((version & 0xffffff00) != VERSION) {
      throw new Malformed("its protocol version is unknown");
    }
    int kind = version & 0xff;
    String method = reader.string();
    if ((kind != REPLY && kind != EXCEPTION) || reader.i32() != sequence) {
      throw new Failure(Attempt.End.BROKEN, "its answer does not belong to the request");
    }
    if (kind == EXCEPTION) {
      throw fault(reader);
    }
    if (!method.equals(ask.method)) {
      throw new Failure(Attempt.End.BROKEN, "its answer does not belong to the request");
    }
    return result(reader, ask);
  }

  private static <T> T result(Reader reader, Ask<T> ask) throws Malformed, Failure {
    T answer = null;
    Refusal refusal = null;
    LeaseWire.Refusal ofLease = null;
    for (byte type = reader.i8(); type != Reader.STOP; type = reader.i8()) {
      int id = reader.i8() << 8 | reader.i8() & 0xff;
      if (id == 1 && type == Reader.STRUCT) {
        refusal = reader.struct(new Refusal(), Wire::refusal);
        continue;
      }
      if (id == 2 && type == Reader.STRUCT && ask.form == Ask.Form.STRUCT) {
        ofLease = reader.struct(new LeaseWire.Refusal(), LeaseWire::refusal);
        continue;
      }
      T read = id == 0 ? ask.result.read(reader, type) : null;
      if (read == null) {
        reader.skip(type, 0);
      } else {
        answer = read;
      }
    }
    if (refusal != null) {
      throw new Failure(Attempt.End.REFUSED, refusal.message, Reason.of(refusal.reason),
          Math.max(0, refusal.retryAfterMs), refusal.anotherMayHelp, false);
    }
    if (ofLease != null) {
      throw Failure.ofLease(ofLease);
    }
    answer = answer == null ? ask.result.ifAbsent() : answer;
    if (answer == null) {
      throw new Failure(Attempt.End.BROKEN, "its answer contains neither a result nor a refusal");
    }
    return answer;
  }

  private static Failure fault(Reader reader) throws Malformed {
    Fields<Fault> fields = (from, into, id, type) -> {
      if (id == 1 && type == Reader.STRING) {
        into.message = from.string();
      } else if (id == 2 && type == Reader.I32) {
        into.type = from.i32();
      } else {
        return false;
      }
      return true;
    };
    Fault fault = reader.struct(new Fault(), fields);
    return fault.type == UNKNOWN_METHOD
        ? Failure.lackingMethod("it does not know the method: " + fault.message)
        : new Failure(Attempt.End.BROKEN, "it failed to handle the request: " + fault.message);
  }

  // --- fields of structs --------------------------------------------------------------------------

  private static boolean run(Reader reader, Run run, int id, byte type) throws Malformed {
    if (id == 1 && type == Reader.I64) {
      run.first = reader.i64();
    } else if (id == 2 && type == Reader.I32) {
      run.count = reader.i32();
    } else if (id == 3 && type == Reader.I64) {
      run.stride = reader.i64();
    } else {
      return false;
    }
    return true;
  }

  private static boolean status(Reader reader, Status status, int id, byte type) throws Malformed {
    if (id == 1 && type == Reader.STRING) {
      status.clusterUuid = reader.string();
    } else if (id == 5 && type == Reader.STRING) {
      status.layout = reader.string();
    } else if (id == 7 && type == Reader.I32) {
      status.state = state(reader.i32());
    } else if (id == 10 && type == Reader.I64) {
      status.wallMs = reader.i64();
    } else if (id == 14 && type == Reader.LIST) {
      status.tags = reader.structs(TagStatus::new, Wire::tagStatus);
    } else {
      return false;
    }
    return true;
  }

  private static boolean tagStatus(Reader reader, TagStatus tag, int id, byte type) throws Malformed {
    if (id == 1 && type == Reader.STRING) {
      tag.tag = reader.string();
    } else if (id == 2 && type == Reader.STRING) {
      tag.strategy = reader.string();
    } else if (id == 6 && type == Reader.BOOL) {
      tag.asIssued = reader.bool();
    } else {
      return false;
    }
    return true;
  }

  private static boolean serverList(Reader reader, ServerList list, int id, byte type) throws Malformed {
    if (id == 3 && type == Reader.I64) {
      list.version = reader.i64();
    } else if (id == 4 && type == Reader.LIST) {
      list.servers = reader.structs(Entry::new, Wire::entry);
    } else if (id == 6 && type == Reader.I32) {
      list.askAgainMs = reader.i32();
    } else {
      return false;
    }
    return true;
  }

  private static boolean entry(Reader reader, Entry entry, int id, byte type) throws Malformed {
    if (id == 1 && type == Reader.STRING) {
      entry.address = reader.string();
    } else if (id == 2 && type == Reader.I32) {
      entry.rack = reader.i32();
    } else if (id == 3 && type == Reader.I32) {
      entry.weight = reader.i32();
    } else if (id == 4 && type == Reader.BOOL) {
      entry.online = reader.bool();
    } else if (id == 5 && type == Reader.I32) {
      entry.state = state(reader.i32());
    } else if (id == 6 && type == Reader.BOOL) {
      entry.tls = reader.bool();
    } else {
      return false;
    }
    return true;
  }

  private static boolean refusal(Reader reader, Refusal refusal, int id, byte type) throws Malformed {
    if (id == 1 && type == Reader.I32) {
      refusal.reason = reader.i32();
    } else if (id == 2 && type == Reader.STRING) {
      refusal.message = reader.string();
    } else if (id == 3 && type == Reader.I32) {
      refusal.retryAfterMs = reader.i32();
    } else if (id == 4 && type == Reader.BOOL) {
      refusal.anotherMayHelp = reader.bool();
    } else {
      return false;
    }
    return true;
  }

  private static State state(int number) {
    State[] known = State.values();
    return number > 0 && number < known.length ? known[number] : State.UNKNOWN;
  }
}
