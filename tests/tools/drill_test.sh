#!/usr/bin/env bash
# tools/drill injects faults into a real cluster and reports the result correctly: a restart breaks no
# promise, and an id that was issued twice does.
#
#   drill_test.sh ROOT BIN
set -euo pipefail
root=$1 bin=$2

# ZooKeeper's client library leaks a little at the end of a process.
export ASAN_OPTIONS=detect_leaks=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

source "$root/tests/tools/expect.sh"
drill() { # drill WHAT CODE ARGUMENT...
  local what=$1 wanted=$2 code=0
  shift 2
  "$root/tools/drill" "$@" >"$work/out" 2>&1 || code=$?
  expect "$what" "$wanted" "$code"
}
said() { # said ROW: prints the row's value
  sed -n "s/^  $1  *//p" "$work/out"
}

drill "requires a scenario" 2
drill "refuses an unknown scenario" 2 burn-server
expect "names the unknown scenario" 1 "$(grep -c "there is no scenario 'burn-server'" "$work/out")"

# A drill that cannot run names the reason and reports no broken promise.
mkdir "$work/path"
ln -s /usr/bin/* "$work/path"
rm "$work/path/java"
PATH=$work/path drill "cannot run without java" 3 kill-server "--bin=$bin"
expect "names the missing program" 1 "$(grep -c "java is missing; tools/setup --cluster" "$work/out")"
TMPDIR=$work/nowhere drill "cannot run without a temporary folder" 3 kill-server "--bin=$bin"
expect "names the folder" 1 "$(grep -c "no room for a cluster in $work/nowhere" "$work/out")"
mkdir "$work/broken"
ln -s "$bin/firn" "$work/broken"
printf '#!/bin/sh\necho no such flag >&2\nexit 2\n' >"$work/broken/firn-server"
chmod +x "$work/broken/firn-server"
drill "cannot run if a server does not start" 3 kill-server "--bin=$work/broken"
expect "prints the server's output" 1 "$(grep -c '^no such flag$' "$work/out")"
expect "prints the free space" 1 "$(grep -cE 'left for it: [0-9.]+[A-Z]?$' "$work/out")"

drill "a restart under load keeps every promise" 0 restart-server --polite --away 1 --rate 100 \
  "--bin=$bin" "--logs=$work/logs"
expect "no id was issued twice" 0 "$(said duplicates)"
expect "there were ids" yes "$([[ $(said ids) -gt 100 ]] && echo yes)"
expect "no call failed" 0 "$(said 'calls failed' | cut -d ' ' -f 1)"
expect "prints the machine ids before" 3 "$(said 'machine ids before' | grep -oE '=[0-9]+' | wc -l)"
expect "and after" 3 "$(said 'machine ids after' | grep -oE '=[0-9]+' | wc -l)"
expect "logs are kept" yes "$([[ -s $work/logs/restart-server/server-1.log ]] && echo yes)"

# The same, with a firn that reports an id that was issued twice.
mkdir "$work/bin"
ln -s "$bin/firn-server" "$bin/drill_awkward_clients" "$work/bin"
cat >"$work/bin/firn" <<FIRN
#!/usr/bin/env bash
"$bin/firn" "\$@" | sed 's/^  "duplicates": 0,/  "duplicates": 1,/'
exit "\${PIPESTATUS[0]}"
FIRN
chmod +x "$work/bin/firn"
drill "an id that was issued twice is a broken promise" 1 restart-server --away 1 --rate 100 \
  "--bin=$work/bin"
expect "awkward clients got ids, too" yes \
  "$([[ $(said 'awkward clients' | cut -d ' ' -f 1) -gt 100 ]] && echo yes)"
expect "names the broken promise" 1 "$(grep -c 'ids that were issued twice: 1' "$work/out")"

if ((faults > 0)); then
  echo "$faults expectations failed"
  exit 1
fi
