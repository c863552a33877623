#!/usr/bin/env bash
# Runs both commands of the README in a clean machine of a Debian release, from a clone of HEAD: ./tools/run and
# ./tools/test. Then runs the tests of the packages and the image of that release. Needs root and mmdebstrap.
#
#   debian.sh RELEASE FOLDER [COMMAND...]     FOLDER: for the machine, re-created if it is below build/. COMMAND: other
#                                             commands than these, in the clone
source "$(dirname "$(readlink -f "$0")")/../../tools/lib.sh"
release=$1 root=$(absolute "$2")
shift 2
(($# > 0)) || set -- './tools/run --once' './tools/test' \
  "CI=true ./tools/test --filter '^package_(made|life_test|image|containers_test)\$'"

[[ ! -e $root || $root == "$FIRN_ROOT"/build/* ]] || fail "$root exists and is not below $FIRN_ROOT/build"
# A machine of an earlier run has all packages already.
rm -rf --one-file-system "$root"
tools/package/debian_root.sh "$release" ca-certificates,git,sudo "$root" --variant=minbase
git clone --quiet --no-hardlinks . "$root/root/firn"
# Binds the root to itself, because pivot_root and buildah require a root that is a mount point.
for command in "$@"; do
  say "$release: $command"
  unshare --mount --pid --fork --mount-proc="$root/proc" sh -c '
    mount --rbind "$0" "$0"
    mount --rbind /dev "$0/dev"
    mount --rbind /sys "$0/sys"
    mount --bind /etc/resolv.conf "$0/etc/resolv.conf"
    exec chroot "$0" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 sh -c "cd /root/firn && $1"
  ' "$root" "$command" || fail "$release: $command failed"
done
