#!/usr/bin/env bash
# Writes a root of a Debian release with packages, from the mirrors that this machine's apt uses. Needs mmdebstrap.
#
#   debian_root.sh RELEASE PACKAGE,... TARGET [OPTION...]     RELEASE: bookworm or trixie. TARGET and options: of mmdebstrap
set -euo pipefail
release=$1 packages=$2 target=$3
shift 3
source /etc/os-release
sources=$(mktemp -d)
trap 'rm -rf "$sources"' EXIT
# In a root that mmdebstrap wrote, the file is 0000debian.sources.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*debian.sources; do
  [[ ! -s $file ]] || sed "s/\b$VERSION_CODENAME\b/$release/g" "$file" >"$sources/${file##*/}"
done
[[ -n $(ls "$sources") ]] || {
  echo "no mirror of Debian in /etc/apt/sources.list or /etc/apt/sources.list.d/*debian.sources" >&2
  exit 1
}
mmdebstrap --include="$packages" "$@" "$release" "$target" "$sources"/*
