#!/usr/bin/env bash
# A server on a file system that turns read-only, as ext4 does after an error: with a machine id
# assigned by its operator it issues only what its grant file permits, reports the fault, and cannot be
# restarted there. Requires a loop device in its own mount namespace; without permission it is skipped.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../../tools/lib.sh"
server=$1
if [[ ${2:-} != inside ]]; then
  unshare -m true 2>/dev/null || { echo 'no permission to create a mount namespace'; exit 77; }
  exec unshare -m "${BASH_SOURCE[0]}" "$server" inside
fi

dir=$(mktemp -d)
pid=''
clean() {
  [[ -z $pid ]] || kill -KILL "$pid" 2>/dev/null || true
  umount -l "$dir/state" 2>/dev/null || true
  rm -rf "$dir"
}
trap clean EXIT
truncate -s 64M "$dir/image" && mkdir "$dir/state"
command -v mkfs.ext4 >/dev/null || { echo 'mkfs.ext4 is not installed'; exit 77; }
mkfs.ext4 -q "$dir/image"
mount -o loop,errors=remount-ro "$dir/image" "$dir/state" 2>/dev/null ||
  { echo 'no loop device may be mounted here'; exit 77; }
device=$(basename "$(findmnt -no SOURCE "$dir/state")")
[[ -w /sys/fs/ext4/$device/trigger_fs_error ]] || { echo 'no error can be made here'; exit 77; }

fail() {
  echo "$1" >&2
  cat "$dir"/log* >&2
  exit 1
}
# Replaces the subshell in which it runs.
serve() {
  exec "$server" --registry=static:$((768 + $$ % 256)) --static_first_start --state_dir="$dir/state" --application=test \
    --listen=127.0.0.1:"$port" --admin_listen=127.0.0.1:"$admin" --logtostderr
}
# Waits until the log contains the words, for at most two minutes.
await() {
  for ((i = 0; i < 1200; ++i)); do
    ! grep -q "$1" "$dir/log" || return 0
    read -rt 0.1 <> <(:) || true
  done
  fail "the log does not contain: $1"
}
readiness() (
  exec 3<>"/dev/tcp/127.0.0.1/$admin"
  printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3
  cat <&3
)

free_port
admin=$port
free_port
serve >"$dir/log" 2>&1 &
pid=$!
await 'listening on'
for ((i = 0; i < 1200; ++i)); do
  ! readiness 2>/dev/null | grep -q ' 200 ' || break
  read -rt 0.1 <> <(:) || true
done
echo 1 >"/sys/fs/ext4/$device/trigger_fs_error"
await 'grant file cannot be written.*Read-only file system'
for ((i = 0; i < 1200; ++i)); do
  ! readiness | grep -q ' 503 ' || break
  read -rt 0.1 <> <(:) || true
done
readiness | grep -q ' 503 ' || fail 'it is still ready'
kill -TERM "$pid"
wait "$pid" || fail 'it did not end in order'
pid=''
! (serve >"$dir/log2" 2>&1) || fail 'it started on a file system that is read-only'
grep -q "$dir/state.*Read-only file system" "$dir/log2" || fail 'the refusal does not name the path'
echo ok
