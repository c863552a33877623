package io.firn;

import io.firn.wire.IdRun;
import io.firn.wire.IdService;
import io.firn.wire.Refusal;
import io.firn.wire.ServerList;
import io.firn.wire.ServerStatus;
import java.util.HashSet;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.apache.thrift.TBase;
import org.apache.thrift.TFieldIdEnum;

/** A method of the wire contract with its arguments, and the parser of its answer. */
final class Ask<T> {
  final String method;
  final String tag;
  final TBase<?, ?> arguments;
  private final Supplier<TBase<?, ?>> result;
  private final Function<T, String> fault;
  private final Function<T, LongStream> numbers;

  private Ask(String method, String tag, TBase<?, ?> arguments, Supplier<TBase<?, ?>> result,
      Function<T, String> fault, Function<T, LongStream> numbers) {
    this.method = method;
    this.tag = tag;
    this.arguments = arguments;
    this.result = result;
    this.fault = fault;
    this.numbers = numbers;
  }

  static Ask<Long> id(String tag) {
    return new Ask<>("getId", tag, new IdService.getId_args(tag), IdService.getId_result::new,
        id -> null, LongStream::of);
  }

  static Ask<List<Long>> ids(String tag, int count) {
    return new Ask<>("getIds", tag, new IdService.getIds_args(tag, count),
        IdService.getIds_result::new, ids -> faultOf(ids, count),
        ids -> ids.stream().mapToLong(Long::longValue));
  }

  static Ask<List<IdRun>> runs(String tag, long count) {
    return new Ask<>("getRuns", tag, new IdService.getRuns_args(tag, count),
        IdService.getRuns_result::new, runs -> faultOfRuns(runs, count),
        runs -> runs.stream().flatMapToLong(run -> LongStream.of(run.first, lastOf(run))));
  }

  static Ask<String> text(String tag) {
    return new Ask<>("getText", tag, new IdService.getText_args(tag), IdService.getText_result::new,
        text -> text.isEmpty() ? "its text is empty"
            : Failure.isPrintable(text) ? null : "its text has a control character",
        text -> LongStream.empty());
  }

  static Ask<ServerStatus> status() {
    return new Ask<>("status", "", new IdService.status_args(), IdService.status_result::new,
        status -> null, status -> LongStream.empty());
  }

  static Ask<ServerList> servers(long known) {
    return new Ask<>("servers", "", new IdService.servers_args(known), IdService.servers_result::new,
        list -> null, list -> LongStream.empty());
  }

  TBase<?, ?> newResult() {
    return result.get();
  }

  /** Null unless the server refused. */
  static Refusal refusalIn(TBase<?, ?> got) {
    return (Refusal) field(got, 1);
  }

  /** Null if the result contains no answer. */
  @SuppressWarnings("unchecked")
  T answerIn(TBase<?, ?> got) {
    return (T) field(got, 0);
  }

  /** A field by its number in the contract: what a method gives is 0 in each of them. */
  private static <F extends TFieldIdEnum> Object field(TBase<?, F> got, int number) {
    F field = got.fieldForId(number);
    return field != null && got.isSet(field) ? got.getFieldValue(field) : null;
  }

  /** A sentence if it cannot be an answer to the request; otherwise null. */
  String faultOf(T answer, IdCheck check) {
    String found = fault.apply(answer);
    if (found != null) {
      return found;
    }
    return numbers.apply(answer).mapToObj(id -> check.faultOf(tag, id)).filter(one -> one != null)
        .findFirst().orElse(null);
  }

  private static String faultOf(List<Long> ids, int count) {
    if (ids.size() != count) {
      return "it gave " + ids.size() + " ids, not " + count;
    }
    return new HashSet<>(ids).size() == count ? null : "its answer contains an id twice";
  }

  private static String faultOfRuns(List<IdRun> runs, long count) {
    long got = 0;
    IdRun before = null;
    for (IdRun run : runs) {
      if (run.count < 1 || run.stride < 1 || (before != null && run.first <= lastOf(before))) {
        return "a run is empty, or does not ascend";
      }
      try {
        Math.addExact(run.first, Math.multiplyExact(run.count - 1L, run.stride));
      } catch (ArithmeticException beyond) {
        return "a run exceeds the largest 64-bit id";
      }
      got += run.count;
      before = run;
    }
    return got == count ? null : "its runs hold " + got + " ids, not " + count;
  }

  private static long lastOf(IdRun run) {
    return run.first + (run.count - 1L) * run.stride;
  }

  static List<String> timedTags(ServerStatus status) {
    return status.tags == null ? List.of() : status.tags.stream()
        .filter(one -> "snowflake".equals(one.strategy) && one.as_issued)
        .map(one -> one.tag).collect(Collectors.toList());
  }
}
