#!/usr/bin/env bash
# tools/bench/run starts firn-server, the databases and the load, measures every row, and leaves
# nothing behind.
#
#   bench_run_test.sh ROOT BIN
set -euo pipefail
root=$1 bin=$2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work # what it makes is in here
chmod 755 "$work"   # a database's own user has to get through
# ZooKeeper's client library leaks a little at the end of a process.
export ASAN_OPTIONS=detect_leaks=0

source "$root/tests/tools/expect.sh"
run() { "$root/tools/bench/run" --bin "$bin" "$@" >"$work/out" 2>"$work/err"; }

code=0
run --only=counters --rounds=1 --measure-ms=20 --check "--save=$work/kept.json" || code=$?
expect "it measures: $(tail -n 3 "$work/err")" 0 "$code"
for row in "epoll echo" "firn, no store" "firn, step 10 million" "firn, step adapts" \
  "firn, step 10,000" "firn, rising, at the owner" "firn, rising, elsewhere" \
  "firn, buffer=none" "redis INCR" "mariadb" "postgresql"; do
  expect "three shapes have a row of $row" 3 "$(grep -c "^  $row  " "$work/out")"
done
expect "report writes a page of the saved results" 3 \
  "$("$root/tools/bench/report" "$work/kept.json" | grep -c "<h2>counters: single ids, ")"
rm "$work/kept.json"
expect "nothing is left behind" "err out" "$(cd "$work" && echo *)"

code=0
run --only=tls --rounds=1 --measure-ms=20 --check || code=$?
expect "it measures TLS: $(tail -n 3 "$work/err")" 0 "$code"
for row in "openssl echo" "firn, TLS" "firn, plain"; do
  expect "two shapes and two kinds of handshakes have a row of $row" 4 \
    "$(grep -c "^  $row  " "$work/out")"
done
expect "nothing is left behind of that" "err out" "$(cd "$work" && echo *)"

code=0
run --only=incr --rounds=1 --measure-ms=20 || code=$?
expect "it measures INCR: $(tail -n 3 "$work/err")" 0 "$code"
for row in "redis INCR" "firn INCR"; do
  expect "three shapes have a row of $row" 3 "$(grep -c "^  $row  " "$work/out")"
done
expect "nothing is left behind of INCR" "err out" "$(cd "$work" && echo *)"

# Without its packages, which Maven fetches, this group is not measured.
code=0
run --only=dubbo --rounds=1 --measure-ms=20 || code=$?
if ((code != 77)); then
  expect "it measures Dubbo: $(tail -n 3 "$work/err")" 0 "$code"
  for row in "dubbo provider" "firn dubbo"; do
    expect "three shapes have a row of $row" 3 "$(grep -c "^  $row  " "$work/out")"
  done
fi
expect "nothing is left behind of Dubbo" "err out" "$(cd "$work" && echo *)"

code=0
run --only=machines --rounds=1 --measure-ms=20 --check || code=$?
expect "it measures several machine ids: $(tail -n 3 "$work/err")" 0 "$code"
for row in "1 id, getIds(1000)" "1 id, getRuns(1000)" "4 ids, getIds(1000)" "4 ids, getRuns(1000)"; do
  expect "both shapes have a row of $row" 2 "$(grep -cF "  $row  " "$work/out")"
done

code=0
run --only=overload --rounds=1 --measure-ms=300 || code=$?
expect "it measures overload: $(tail -n 3 "$work/err")" 0 "$code"
for row in "1 client" "8 clients" "200 clients"; do
  expect "overload has a row of $row" 1 "$(grep -c "^  $row  " "$work/out")"
done
expect "nothing is left behind of overload" "err out" "$(cd "$work" && echo *)"

# A folder with the programs that the script uses before it looks for databases, but no database.
mkdir "$work/few"
ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$work/few/python3"
ln -s "$(command -v env)" "$(command -v taskset)" "$work/few/"
code=0
PATH=$work/few run --only=door || code=$?
expect "a missing program ends it" 1 "$code"
expect "with the package's name" 1 "$(grep -c 'comes with the package' "$work/err")"

code=0
run --only=dors || code=$?
expect "an unknown group is refused" 2 "$code"

if ((faults > 0)); then
  echo "$faults expectations failed"
  exit 1
fi
