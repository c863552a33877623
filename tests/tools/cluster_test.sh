#!/usr/bin/env bash
# tools/cluster creates a cluster that serves, reports what is wrong with it, repairs it, and leaves
# nothing behind; likewise with an ensemble of three that elects a leader.
#
#   cluster_test.sh ROOT BIN
set -euo pipefail
root=$1 bin=$2

# ZooKeeper's client library leaks a little at the end of a process.
export ASAN_OPTIONS=detect_leaks=0
work=$(mktemp -d)
cd "$work"  # what is printed is for where it was typed
cluster() { "$root/tools/cluster" "$@" "--folder=$work/cluster"; }
clean() {
  cluster down >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean EXIT

source "$root/tests/tools/expect.sh"
expect_exit() {  # expect_exit WHAT CODE COMMAND...
  local what=$1 wanted=$2 code=0
  shift 2
  "$@" >"$work/out" 2>&1 || code=$?
  expect "$what: $(tail -n 3 "$work/out")" "$wanted" "$code"
}
pids() { cat "$work"/cluster/*/pid; }
ids() {  # ids SERVER: takes a thousand ids
  curl -s "http://127.0.0.1:$(cat "$work/cluster/$1/port")/v1/ids/default?count=1000" |
    grep -oE '[0-9]{15,}'
}

expect_exit "there is no cluster yet" 3 cluster status
expect_exit "--servers requires a number" 1 cluster up --servers=none
mkdir "$work/mine" && touch "$work/mine/file"
expect_exit "refuses a folder that it did not create" 1 \
  "$root/tools/cluster" up "--folder=$work/mine" "--bin=$bin"
expect "keeps the files in it" file "$(ls "$work/mine")"

# names_all: prints how many servers each server lists as ready.
names_all() {
  local own
  for own in "$work"/cluster/server-*; do
    curl -s "http://127.0.0.1:$(cat "$own/port")/v1/servers" |
      grep -o '{"address":"[^}]*"state":"READY"' | cut -d '"' -f 4 | sort -u | wc -l
  done | xargs
}

expect_exit "a cluster comes up" 0 cluster up --servers=2 "--bin=$bin"
expect "each server names both" "2 2" "$(names_all)"
sed -n 's/^  //p' "$work/out" >"$work/printed"
expect "prints commands to try" 6 "$(wc -l <"$work/printed")"
while read -r printed; do
  [[ $printed != *" down"* && $printed != *" bench "* ]] || continue
  expect_exit "the printed command works: $printed" 0 bash -c "cd '$work' && $printed" </dev/null
done <"$work/printed"
expect_exit "all of it serves" 0 cluster status
expect "each member has a line" 3 "$(grep -cE '^(zk|server)-[0-9]+ ' "$work/out")"
expect "all ids differ" 2000 "$({ ids server-1 && ids server-2; } | sort -u | wc -l)"

before=$(pids)
expect_exit "up once more, with the same programs" 0 cluster up
expect "builds nothing" 0 "$(grep -c building "$work/out" || true)"
expect "changes nothing" "$before" "$(pids)"
expect_exit "up refuses a lower number of servers" 1 cluster up --servers=1 "--bin=$bin"

read -r victim _ <"$work/cluster/server-2/pid"
kill -KILL "$victim"
expect_exit "status fails if a server has ended" 1 cluster status
expect "status names the server" 1 "$(grep -c '^server-2 .* ended ' "$work/out")"
sed -i '1i env\nFIRN_ANY=1' "$work/cluster/server-2/command"
expect_exit "up starts it with its variables, and a third one" 0 cluster up --servers=3
expect "builds nothing for it" 0 "$(grep -c building "$work/out" || true)"
expect "each server names all three" "3 3 3" "$(names_all)"
expect_exit "all three serve" 0 cluster status
expect_exit "a log can be read" 0 cluster logs server-3
expect "the log is not empty" yes "$([[ -s $work/out ]] && echo yes)"

expect_gone() {  # takes the cluster down
  local pid began now
  pids >"$work/pids"
  expect_exit "it goes down" 0 cluster down
  expect "the folder is gone" no "$([[ -e $work/cluster ]] || echo no)"
  while read -r pid began; do
    now=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | awk '$1 != "Z" { print $20 }' || true)
    expect "process $pid has ended" other "$([[ $now == "$began" ]] || echo other)"
  done <"$work/pids"
}
expect_gone

# ---- an ensemble ----------------------------------------------------------------------------------

expect_ensemble() {  # expect_ensemble WHAT: three members, of which one leads
  expect_exit "$1: all of it serves" 0 cluster status
  expect "$1" "follower follower leader" "$(awk '/^zk-/ { print $4 }' "$work/out" | sort | xargs)"
}

expect_exit "an ensemble comes up" 0 cluster up --zookeeper=3 --servers=1 "--bin=$bin"
expect_ensemble "three members"
expect "the registry's address names all three" 2 \
  "$(grep '^registry: ' "$work/out" | tr -cd , | wc -c)"

read -r victim _ <"$work/cluster/$(awk '$4 == "leader" { print $1 }' "$work/out")/pid"
kill -KILL "$victim"
expect_exit "status fails if a member has ended" 1 cluster status
expect_exit "up starts it again" 0 cluster up "--bin=$bin"
expect_ensemble "three members after a leader's death"
expect "ids are issued" 1000 "$(ids server-1 | sort -u | wc -l)"
expect_gone

if ((faults > 0)); then
  echo "$faults expectations failed"
  exit 1
fi
