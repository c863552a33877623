package io.firn;

import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Checks that a server can have issued ids, by the layout and the clock in its status. */
final class IdCheck {
  private static final long SLACK_MS = 24 * 3_600_000L;
  private static final String VESTA = "version:1 type:1=%d method:2 time:%s machine:10 epoch:1420041600000";
  private static final Map<String, String> NAMED = Map.of(
      "firn", "time:41 machine:10 sequence:12",
      "twitter", "time:41 machine:10 sequence:12 epoch:1288834974657",
      "vesta-max-peak", String.format(VESTA, 0, "30s sequence:20"),
      "vesta-min-granularity", String.format(VESTA, 1, "40 sequence:10"),
      "js-safe", "time:41 machine:6 sequence:6");
  private static final Pattern TIME = Pattern.compile("(\\d+)(?:@(\\d+))?(ms|s)?");

  private final Set<String> timed; // tags whose ids contain a time and are not obfuscated
  private final long offsetMs;     // the server's clock ahead of System.nanoTime
  private boolean known;           // false: a newer layout; checks only rules of all layouts
  private boolean signed;
  private long tickMs = 1;
  private long epochMs = 1_704_067_200_000L;
  private long fixedMask;
  private long fixedBits;
  private int timeShift;
  private long timeMask;

  IdCheck(String layout, Set<String> timed, long wallMs) {
    this.timed = timed;
    this.offsetMs = wallMs - System.nanoTime() / 1_000_000;
    try {
      known = read(NAMED.getOrDefault(layout, layout));
    } catch (RuntimeException newer) {
      known = false;
    }
  }

  /** A sentence if the server cannot have issued the id; otherwise null. */
  String faultOf(String tag, long id) {
    if (id == 0 || (id < 0 && !(known && signed))) {
      return "no id is " + id;
    }
    if (!known || !timed.contains(tag)) {
      return null;
    }
    if ((id & fixedMask) != fixedBits) {
      return id + " cannot be an id of this cluster: a fixed bit of the layout differs";
    }
    long at = epochMs + (id >>> timeShift & timeMask) * tickMs;
    boolean near = Math.abs(at - offsetMs - System.nanoTime() / 1_000_000) <= SLACK_MS;
    return near ? null : id + " cannot be an id of this cluster: its time is more than a day from the clock";
  }

  private boolean read(String layout) {
    String[] tokens = layout.trim().split("\\s+");
    int shift = 0;
    for (int i = tokens.length - 1; i >= 0; i--) {
      String[] parts = tokens[i].split(":", 2);
      if (parts[0].equals("epoch")) {
        epochMs = momentMs(parts[1]);
      } else {
        shift += readField(parts[0], parts[1], shift);
      }
    }
    if (shift < 64) {
      fixedMask |= -1L << shift;
    }
    return timeMask != 0 && shift <= 64;
  }

  /** Adds the field that begins at bit `shift`; returns its width. */
  private int readField(String name, String value, int shift) {
    if (name.equals("time")) {
      Matcher match = TIME.matcher(value);
      if (!match.matches()) {
        throw new IllegalArgumentException(value);
      }
      int width = Integer.parseInt(match.group(1));
      tickMs = (match.group(2) == null ? 1 : Long.parseLong(match.group(2)))
          * ("s".equals(match.group(3)) ? 1000 : 1);
      timeShift = shift;
      timeMask = (1L << width) - 1;
      return width;
    }
    String[] parts = value.split("=");
    int width = Integer.parseInt(parts[0]);
    if (name.equals("zero") || name.equals("type")) {
      fixedMask |= ((1L << width) - 1) << shift;
      fixedBits |= (parts.length > 1 ? Long.parseLong(parts[1]) : 0) << shift;
    }
    signed = signed || (name.equals("version") && shift + width == 64);
    return width;
  }

  private static long momentMs(String text) {
    if (text.matches("\\d+")) {
      return Long.parseLong(text);
    }
    return text.length() == "2024-01-01".length()
        ? LocalDate.parse(text).atStartOfDay(ZoneOffset.UTC).toInstant().toEpochMilli()
        : Instant.parse(text).toEpochMilli();
  }
}
