package io.firn;

import io.firn.LeaseWire.Terms;
import io.firn.Wire.Run;
import io.firn.Wire.ServerList;
import io.firn.Wire.Status;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** A method of the wire contract with its arguments, and the checks of its answer. */
final class Ask<T> {
  /** The arguments of a method. */
  enum Form { NOTHING, KNOWN, TAG, TAG_AND_I32, TAG_AND_I64, STRUCT }

  /** Returns a sentence if the answer cannot be one to the request; otherwise null. */
  private interface Check<T> {
    String faultOf(T answer, Ask<T> ask, IdCheck ids);
  }

  private static final String NOT_UTF_8 = "\ufffd"; // in place of bytes that are not

  final String method;
  final Form form;
  final String tag;
  final long number; // count, or version of a list
  final byte[] struct; // the encoded argument, in the form STRUCT
  final Wire.Result<T> result;
  private final Check<T> check;

  private Ask(String method, Form form, String tag, long number, Wire.Result<T> result, Check<T> check) {
    this(method, form, tag, number, null, result, check);
  }

  private Ask(String method, Form form, String tag, long number, byte[] struct, Wire.Result<T> result,
      Check<T> check) {
    this.method = method;
    this.form = form;
    this.tag = tag;
    this.number = number;
    this.struct = struct;
    this.result = result;
    this.check = check;
  }

  static Ask<Long> id(String tag) {
    return new Ask<>("getId", Form.TAG, tag, 0, Wire.ID, (id, ask, ids) -> ids.faultOf(ask.tag, id));
  }

  static Ask<long[]> ids(String tag, int count) {
    return new Ask<>("getIds", Form.TAG_AND_I32, tag, count, Wire.IDS, Ask::faultOfIds);
  }

  static Ask<List<Run>> runs(String tag, long count) {
    return new Ask<>("getRuns", Form.TAG_AND_I64, tag, count, Wire.RUNS, Ask::faultOfRuns);
  }

  static Ask<String> text(String tag) {
    return new Ask<>("getText", Form.TAG, tag, 0, Wire.TEXT, (text, ask, ids) -> text.isEmpty()
        ? "its text is empty" : Failure.isPrintable(text) ? null : "its text has a control character");
  }

  static Ask<Status> status() {
    return new Ask<>("status", Form.NOTHING, "", 0, Wire.STATUS, (status, ask, ids) -> null);
  }

  static Ask<ServerList> servers(long known) {
    return new Ask<>("servers", Form.KNOWN, "", known, Wire.SERVERS, (list, ask, ids) -> null);
  }

  static Ask<Terms> lease(byte[] ask) {
    return new Ask<>("lease", Form.STRUCT, "", 0, ask, LeaseWire.TERMS, Ask::faultOfTexts);
  }

  static Ask<Terms> renewLease(byte[] renewal) {
    return new Ask<>("renewLease", Form.STRUCT, "", 0, renewal, LeaseWire.TERMS, Ask::faultOfTexts);
  }

  static Ask<Boolean> releaseLease(byte[] end) {
    return new Ask<>("releaseLease", Form.STRUCT, "", 0, end, Wire.NOTHING, (done, self, ids) -> null);
  }

  /** Returns a sentence if it cannot be an answer to the request; otherwise null. */
  String faultOf(T answer, IdCheck ids) {
    return check.faultOf(answer, this, ids);
  }

  private static String faultOfTexts(Terms terms, Ask<Terms> ask, IdCheck ids) {
    boolean exact = !(terms.lease + terms.server).contains(NOT_UTF_8);
    return exact && Failure.isPrintable(terms.lease + terms.server) ? null
        : "its lease or server has a control character, or is not UTF-8";
  }

  private static String faultOfIds(long[] answer, Ask<long[]> ask, IdCheck ids) {
    if (answer.length != ask.number) {
      return "it gave " + answer.length + " ids, not " + ask.number;
    }
    if (hasDuplicates(answer)) {
      return "its answer contains an id twice";
    }
    for (long id : answer) {
      String fault = ids.faultOf(ask.tag, id);
      if (fault != null) {
        return fault;
      }
    }
    return null;
  }

  private static boolean hasDuplicates(long[] ids) {
    if (ascend(ids)) {
      return false;
    }
    long[] sorted = ids.clone(); // obfuscated ids are not in ascending order
    Arrays.sort(sorted);
    return !ascend(sorted);
  }

  static boolean ascend(long[] ids) {
    for (int i = 1; i < ids.length; i++) {
      if (ids[i] <= ids[i - 1]) {
        return false;
      }
    }
    return true;
  }

  private static String faultOfRuns(List<Run> answer, Ask<List<Run>> ask, IdCheck ids) {
    long got = 0;
    Run before = null;
    for (Run run : answer) {
      if (run.count < 1 || run.stride < 1 || (before != null && run.first <= before.last())) {
        return "a run is empty, or does not ascend";
      }
      try {
        Math.addExact(run.first, Math.multiplyExact(run.count - 1L, run.stride));
      } catch (ArithmeticException beyond) {
        return "a run exceeds the largest 64-bit id";
      }
      String fault = ids.faultOf(ask.tag, run.first);
      fault = fault == null ? ids.faultOf(ask.tag, run.last()) : fault;
      if (fault != null) {
        return fault;
      }
      got += run.count;
      before = run;
    }
    return got == ask.number ? null : "its runs hold " + got + " ids, not " + ask.number;
  }

  /** Returns the tags whose ids contain a time and are not obfuscated. */
  static Set<String> timedTags(Status status) {
    return status.tags.stream().filter(one -> "snowflake".equals(one.strategy) && one.asIssued)
        .map(one -> one.tag).collect(Collectors.toSet());
  }
}
