#!/usr/bin/env bash
# Writes the package for arm64 beside a package of this machine's architecture: with another program, and otherwise
# equal, because Debian's libraries have the same names on both.
#
#   pack_arm64.sh DEB PROGRAM     DEB: NAME_ARCH.deb. PROGRAM: the program for arm64, which replaces the one in /usr/bin
set -euo pipefail
deb=$1 program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree packed=${deb%_*.deb}_arm64.deb

dpkg-deb --raw-extract "$deb" "$tree"
[[ -f $tree/usr/bin/${program##*/} ]] || { echo "$deb does not contain /usr/bin/${program##*/}" >&2; exit 1; }
cp "$program" "$tree/usr/bin/${program##*/}"
sed -i 's/^Architecture: .*/Architecture: arm64/' "$tree/DEBIAN/control"
(cd "$tree" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
dpkg-deb --root-owner-group --build "$tree" "$packed" >/dev/null
