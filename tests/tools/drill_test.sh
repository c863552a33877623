#!/usr/bin/env bash
# tools/drill does its bad thing to a real cluster and keeps its word about what came of it: a
# restart breaks nothing, and an id that came twice is a broken promise.
#
#   drill_test.sh ROOT BIN
set -euo pipefail
root=$1 bin=$2

# ZooKeeper's client library leaks a little at the end of a process.
export ASAN_OPTIONS=detect_leaks=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

faults=0
expect() { # expect WHAT WANTED GOT
  [[ $2 == "$3" ]] && return
  printf '%s\n  wanted: %s\n  got:    %s\n' "$1" "$2" "$3"
  cat "$work/out"
  faults=$((faults + 1))
}
drill() { # drill WHAT CODE ARGUMENT...
  local what=$1 wanted=$2 code=0
  shift 2
  "$root/tools/drill" "$@" >"$work/out" 2>&1 || code=$?
  expect "$what" "$wanted" "$code"
}
said() { # said ROW: what stands in it
  sed -n "s/^  $1  *//p" "$work/out"
}

drill "a scenario is wanted" 2
drill "one that there is" 2 burn-server
expect "and is told so" 1 "$(grep -c "there is no scenario 'burn-server'" "$work/out")"

# What keeps a drill from being done is no broken promise, and is said.
mkdir "$work/path"
ln -s /usr/bin/* "$work/path"
rm "$work/path/java"
PATH=$work/path drill "without java there is no cluster" 3 kill-server "--bin=$bin"
expect "and is told so" 1 "$(grep -c "java is missing; tools/setup --cluster" "$work/out")"
TMPDIR=$work/nowhere drill "without room there is none either" 3 kill-server "--bin=$bin"
expect "and is told where" 1 "$(grep -c "no room for a cluster in $work/nowhere" "$work/out")"
mkdir "$work/broken"
ln -s "$bin/firn" "$work/broken"
printf '#!/bin/sh\necho no such flag >&2\nexit 2\n' >"$work/broken/firn-server"
chmod +x "$work/broken/firn-server"
drill "nor where a server does not start" 3 kill-server "--bin=$work/broken"
expect "and is told what it said" 1 "$(grep -c '^no such flag$' "$work/out")"
expect "and how much room there was" 1 "$(grep -cE 'left for it: [0-9.]+[A-Z]?$' "$work/out")"

drill "a restart under load keeps every promise" 0 restart-server --polite --away 1 --rate 100 \
  "--bin=$bin" "--logs=$work/logs"
expect "no id came twice" 0 "$(said duplicates)"
expect "there were ids" yes "$([[ $(said ids) -gt 100 ]] && echo yes)"
expect "no call failed" 0 "$(said 'calls failed' | cut -d ' ' -f 1)"
expect "machine ids before are told" 3 "$(said 'machine ids before' | grep -oE '=[0-9]+' | wc -l)"
expect "and after" 3 "$(said 'machine ids after' | grep -oE '=[0-9]+' | wc -l)"
expect "logs are kept" yes "$([[ -s $work/logs/restart-server/server-1.log ]] && echo yes)"

# The same, with clients that tell of an id that came twice.
mkdir "$work/bin"
ln -s "$bin/firn-server" "$bin/drill_awkward_clients" "$work/bin"
cat >"$work/bin/firn" <<FIRN
#!/usr/bin/env bash
"$bin/firn" "\$@" | sed 's/^  "duplicates": 0,/  "duplicates": 1,/'
exit "\${PIPESTATUS[0]}"
FIRN
chmod +x "$work/bin/firn"
drill "an id that came twice is a broken promise" 1 restart-server --away 1 --rate 100 \
  "--bin=$work/bin"
expect "awkward clients got ids, too" yes \
  "$([[ $(said 'awkward clients' | cut -d ' ' -f 1) -gt 100 ]] && echo yes)"
expect "and is named" 1 "$(grep -c 'ids that came twice: 1' "$work/out")"

if ((faults > 0)); then
  echo "$faults expectations failed"
  exit 1
fi
