# Shell functions that the scripts of tools/ share. Sourced, never run:
#   source "$(dirname "$(readlink -f "$0")")/lib.sh"
# Leaves the caller in the root of the repository.

set -euo pipefail

# Computed before the change of folder, because the script's path may be relative.
FIRN_SCRIPT=$(readlink -f "$0")
FIRN_CALLER=$PWD
FIRN_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$FIRN_ROOT"

# Lets ccache reuse objects of another clone: it hashes paths below the root relative to it.
export CCACHE_BASEDIR=$FIRN_ROOT CCACHE_NOHASHDIR=1

say() { printf '%s: %s\n' "$(basename "$0")" "$*"; }

# Prints a sentence and exits, with $fail_code if the script sets it.
fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit "$fail_code"
}
fail_code=1

# Prints the comment at the head of the script and exits, if the arguments contain --help.
help_if_asked() {
  local arg
  for arg in "$@"; do
    case $arg in
      -h | --help)
        awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$FIRN_SCRIPT"
        exit 0
        ;;
    esac
  done
}

# Prints the package names of a list, whose lines are NAME REASON.
package_names() { awk '!/^[[:space:]]*(#|$)/ { print $1 }' "$@"; }

# Prints ON if tools/setup has installed all packages, so that tests can be built; otherwise OFF.
tests_can_be_built() {
  if [[ $(tools/setup --list) == *"nothing is missing" ]]; then echo ON; else echo OFF; fi
}

# Prints the packages of the input that are neither installed nor provided by an installed package.
# For example, a nodejs from elsewhere provides npm and conflicts with Debian's.
missing_packages() {
  awk '
    NR == FNR {
      if (sub(/^.* installed\|/, "")) for (n = split($0, names, /[ ,]+/); n; --n) have[names[n]] = 1
      next
    }
    !($0 in have)' <(dpkg-query -W -f '${Status}|${Package}, ${Provides}\n' 2>/dev/null) -
}

# Prints how many compilers may run at once: one per core, and per 1.5 GiB of free memory.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo)
  ((memory > 0)) || memory=1
  echo $((cores < memory ? cores : memory))
}

# Shortens ninja's progress for a log, to every tenth of the build, and keeps compilers' messages. Debian's awk would
# print nothing before it has read 4 KB.
thin_progress() {
  local line tenth shown=
  while IFS= read -r line || [[ -n $line ]]; do
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      [[ $tenth == "$shown" ]] || echo "  ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
      shown=$tenth
    elif [[ $line != "ninja: no work to do"* ]]; then
      printf '%s\n' "$line"
    fi
  done
}

# configure PRESET [-DNAME=VALUE...]: prepares build/PRESET, quietly; with tests, unless told otherwise.
# FIRN_CCACHE and FIRN_WERROR in the environment (ON, OFF) set these options. By default, developers' presets
# use ccache, which tools/setup has installed, and a release does not, so that tools/test compiles nothing that
# tools/run has compiled.
configure() {
  local preset=$1 log=build/$1.configure.log option
  shift
  local -a options=("$@")
  if [[ " dev tsan ci " == *" $preset "* ]]; then local FIRN_CCACHE=${FIRN_CCACHE:-ON}; fi
  for option in FIRN_CCACHE FIRN_WERROR; do
    [[ -z ${!option:-} ]] || options+=("-D$option=${!option}")
  done
  mkdir -p build
  cmake --preset "$preset" "${options[@]}" >"$log" 2>&1 || {
    grep -A 8 '^CMake Error' "$log" >&2 || tail -n 20 "$log" >&2
    fail "configuring the preset $preset failed; see $log"
  }
}

# build_targets PRESET TARGET...: on a terminal with ninja's own progress line.
build_targets() {
  local preset=$1
  shift
  if [[ -t 1 ]]; then
    cmake --build --preset "$preset" -j "$(build_jobs)" --target "$@"
  else
    cmake --build --preset "$preset" -j "$(build_jobs)" --target "$@" 2>&1 | thin_progress
  fi
}

# Makes the folder build/arm64-sysroot: the libraries of tools/packages-run.txt for arm64, from the mirrors
# that this machine's apt uses. Installs none of them here, where they would replace this machine's.
arm64_sysroot() {
  local sysroot=build/arm64-sysroot libraries
  libraries=$(package_names tools/packages-run.txt | grep -e '-dev$' | paste -sd,)
  rm -rf "$sysroot"
  mkdir -p "$sysroot"
  tools/package/debian_root.sh "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$libraries" - --quiet \
    --variant=extract --architectures=arm64 | tar -C "$sysroot" -x --no-same-owner --exclude=./dev
}

# Cross-builds the programs for arm64, into build/arm64/bin.
build_arm64() {
  tools/setup --arm64
  arm64_sysroot
  configure arm64
  build_targets arm64 firn-server firn
}

# junit_results FILE: prints "passed NAME", "skipped NAME" or "failed NAME" for each test in ctest's
# file. A test that could not be started counts as failed, although ctest calls it skipped.
junit_results() {
  awk '
    /^\t<testcase / {
      match($0, /name="[^"]*"/); name = substr($0, RSTART + 6, RLENGTH - 7)
      match($0, /status="[^"]*"/); status = substr($0, RSTART + 8, RLENGTH - 9)
      if (status == "run") print "passed", name
      else if (status != "notrun") print "failed", name
    }
    /^\t\t<skipped / { print (/SKIP_/ ? "skipped" : "failed"), name }' "$1"
}

# skipped_cases LOG: prints "TEST CASE" for each case that a GoogleTest program of ctest's log skipped itself.
# Prints nothing if there is no log.
skipped_cases() {
  [[ -f $1 ]] || return 0
  awk '
    /^[0-9]+\/[0-9]+ Testing: / { test = $3 }
    # "[  SKIPPED ] CASE (5 ms)" is repeated without the time, and counted, at the end of the output.
    /^\[  SKIPPED \] .*\([0-9]+ ms\)$/ { print test, $4 }' "$1" | sed 's/,$//' | sort -u
}

# beyond_excuse FILE NAME: whether the failed test's output contains a failure that load on the machine
# cannot cause: an id issued twice, or a sanitizer's report. Not such a failure: "duplicates 0", the name of
# a case ("ok ", "not ok ", "# Subtest: ", "[ RUN "), a line of a server's log (as "W20261126 01:02:03.4 "), words
# such as "a timeout counts twice", and the alarm of a server whose machine id another process claims,
# which some drills cause.
beyond_excuse() {
  awk -v name="$2" '
    /^\t<testcase / { inside = index($0, " name=\"" name "\"") }
    /^(\t*<system-out>)? *((not )?ok[ :]|# Subtest: |\[ +(RUN|OK|FAILED) |Note: Google Test filter|test .* \.\.\. ok|[IWEF]([0-9][0-9][0-9][0-9])?[0-9][0-9][0-9][0-9] [0-9][0-9]:)/ { next }
    { gsub(/duplicates(&quot;:|":)? +0(,|$)|may be (duplicated|issued twice)|issued twice +0$|leads to duplicate ids/, "") }
    inside && /([Ii]ssued|[Gg]iven|[Gg]ave|[Rr]eturned|came|ids?|[Nn]umbers?|something|was|is|[0-9]) twice/ { found = 1 }
    inside && /^(\t*<system-out>)? *twice$|[.]twice\(\)/ { found = 1 }
    inside && /[Dd]uplicate|was issued by |Sanitizer|runtime error/ { found = 1 }
    END { exit !found }' "$1"
}

# what_failed FILE NAME: prints a newline and the lines of the failed test's output that say what failed, at
# most nine.
what_failed() {
  awk -v name="$2" '
    /^\t<testcase / { inside = index($0, " name=\"" name "\""); left = 0 }
    inside && /: Failure$|^FAIL|^ *[A-Za-z.]*Error: |not ok |^guard: / { left = 3 }
    inside && left-- > 0 && ++printed <= 9 { print (printed == 1 ? "\n" : "") "    " substr($0, 1, 200) }' "$1"
}

# excused_when_alone: whether a test that failed beside others and passed by itself counts as passed: the
# machine may have been busy. Not with FIRN_STRICT=true.
excused_when_alone() { [[ ${FIRN_STRICT:-} != true ]]; }

# skip_allowed NAME: whether a test may be skipped. With CI=true only those that tests/skips.txt lists may.
skip_allowed() {
  [[ ${CI:-} != true ]] || grep -Eq "^$1[[:space:]]+[^[:space:]]" "$FIRN_ROOT/tests/skips.txt"
}

# listening PORT: whether a program listens on the port on this machine.
listening() {
  local hex
  printf -v hex %04x "$1"
  grep -qi ":$hex [0-9a-f]*:[0-9a-f]* 0a" /proc/net/tcp /proc/net/tcp6
}

# free_port: sets `port` to a loopback port on which no program listens, and holds it until this script
# and the programs that it starts have ended: no other call returns it, in shell, Python or C++
# (tests/support). It is below the range from which the kernel takes the ports of outgoing connections, so
# it stays free while a server restarts.
free_port() {
  local try lock_fd folder=/tmp/firn-ports-$UID
  mkdir -p -m 700 "$folder"
  for ((try = 0; try < 1000; ++try)); do
    port=$((10000 + (RANDOM * 32768 + RANDOM) % 20000))
    exec {lock_fd}>"$folder/$port"
    if flock --nonblock "$lock_fd" && ! listening "$port"; then return 0; fi
    exec {lock_fd}>&-
  done
  fail "no free port"
}

# absolute PATH: prints the absolute form of a path in the script's arguments.
absolute() { (cd "$FIRN_CALLER" && realpath -m -- "$1"); }

known_preset() { [[ " dev tsan release client-only ci " == *" $1 "* ]]; }
