#!/usr/bin/env bash
# Runs programs of arm64 in an emulator: their versions, and a server that issues ids with a static machine id.
#
#   arm64.sh BIN SYSROOT
source "$(dirname "$(readlink -f "$0")")/../../tools/lib.sh"
bin=$(absolute "$1") sysroot=$(absolute "$2")

emulate() { qemu-aarch64-static -L "$sysroot" "$bin/$1" "${@:2}"; }

for program in firn-server firn; do
  readelf --file-header "$bin/$program" | grep -q 'Machine: *AArch64' || fail "$program is not a program of arm64"
  emulate "$program" --version
done

work=$(mktemp -d)
server=
cleanup() {
  [[ -z $server ]] || kill -KILL "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
free_port && listen=127.0.0.1:$port
free_port && admin=127.0.0.1:$port
qemu-aarch64-static -L "$sysroot" "$bin/firn-server" --registry=static:13 --static_first_start \
  --listen="$listen" --admin_listen="$admin" --state_dir="$work/state" --grant_dir="$work/grant" \
  >"$work/log" 2>&1 &
server=$!

reply=$(curl -sf --max-time 60 --retry 60 --retry-delay 1 --retry-all-errors "http://$listen/v1/ids/default") ||
  { tail -n 20 "$work/log" >&2; fail "the server did not issue an id"; }
id=$(sed -n 's/.*"ids":\["\([0-9]*\)"\].*/\1/p' <<<"$reply")
[[ -n $id ]] || fail "the reply contains no id: $reply"
emulate firn explain "$id" | tee "$work/explained"
grep -Eq 'machine.*\b13\b' "$work/explained" || fail "the id $id is not from machine id 13"

kill -TERM "$server"
wait "$server" || { tail -n 20 "$work/log" >&2; fail "the server did not end normally"; }
server=
say "a server of arm64 issued the id $id"
