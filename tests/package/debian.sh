#!/usr/bin/env bash
# Runs both commands of the README in a clean machine of a Debian release, from a clone of HEAD: ./tools/run, and
# ./tools/test with the packages and the image of that release. Needs root and mmdebstrap.
#
#   debian.sh RELEASE FOLDER [COMMAND...]     FOLDER: for the machine. COMMAND: other commands than these, in the clone
source "$(dirname "$(readlink -f "$0")")/../../tools/lib.sh"
release=$1 root=$(absolute "$2")
shift 2
(($# > 0)) || set -- './tools/run --once' './tools/test'

if [[ ! -x $root/bin/bash ]]; then
  tools/package/debian_root.sh "$release" ca-certificates,git,sudo "$root" --variant=minbase
fi
rm -rf "$root/root/firn"
git clone --quiet --no-hardlinks . "$root/root/firn"
for command in "$@"; do
  say "$release: $command"
  unshare --mount --pid --fork --mount-proc="$root/proc" sh -c '
    mount --rbind /dev "$0/dev"
    mount --bind /etc/resolv.conf "$0/etc/resolv.conf"
    exec chroot "$0" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 sh -c "cd /root/firn && $1"
  ' "$root" "$command" || fail "$release: $command failed"
done
