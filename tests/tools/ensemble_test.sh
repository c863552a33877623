#!/usr/bin/env bash
# tools/cluster --zookeeper 3 starts an ensemble of three that elects a leader, and a server that uses
# it; it restarts a member that has ended.
#
#   ensemble_test.sh ROOT BIN
set -euo pipefail
root=$1 bin=$2

# ZooKeeper's client library leaks a little at the end of a process.
export ASAN_OPTIONS=detect_leaks=0
work=$(mktemp -d)
cluster() { "$root/tools/cluster" "$@" "--folder=$work/cluster"; }
clean() {
  cluster down >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean EXIT

fault() {
  echo "$*"
  cat "$work/out"
  exit 1
}
modes() { awk '/^zk-/ { print $4 }' "$work/out" | sort | xargs; }

cluster up --zookeeper=3 --servers=1 "--bin=$bin" >"$work/out" 2>&1 || fault "the cluster does not start"
cluster status >"$work/out" 2>&1 || fault "not all of it serves"
[[ $(modes) == "follower follower leader" ]] || fault "three members are: $(modes)"
[[ $(grep -o '^registry: .*' "$work/out" | tr -cd , | wc -c) == 2 ]] ||
  fault "the registry's address does not name all three"

read -r victim _ <"$work/cluster/$(awk '$4 == "leader" { print $1 }' "$work/out")/pid"
kill -KILL "$victim"
! cluster status >"$work/out" 2>&1 || fault "status does not report a member that has ended"
cluster up "--bin=$bin" >"$work/out" 2>&1 || fault "up does not restart a leader that has ended"
cluster status >"$work/out" 2>&1 || fault "it does not serve again"
[[ $(modes) == "follower follower leader" ]] || fault "after a leader's death they are: $(modes)"

port=$(cat "$work/cluster/server-1/port")
curl -s "http://127.0.0.1:$port/v1/ids/default?count=3" >"$work/out" 2>&1 || fault "no ids"
[[ $(grep -oE '[0-9]{15,}' "$work/out" | sort -u | wc -l) == 3 ]] || fault "no three ids"
