#!/usr/bin/env bash
# Prepares the tests of packages and images: builds the .deb files, and a tar file of a Debian root with
# their dependencies. Builds a root again only if its list of packages has changed. If it cannot build
# one, because there is no mirror or no permission to mount, the tests that need it are skipped.
#
#   make.sh BUILD_TREE FOLDER
set -euo pipefail
build=$1 folder=$2
mkdir -p "$folder"
log=$folder/log

rm -rf "$folder"/debs
# Any date: the times of all files in the packages.
SOURCE_DATE_EPOCH=1767225600 cpack --config "$build/CPackConfig.cmake" -G DEB -B "$folder/debs" >"$log" 2>&1 ||
  { cat "$log"; echo "cpack failed"; exit 1; }
rm -rf "$folder"/debs/_CPack_Packages

# The mirror that this machine's apt uses.
sources=()
for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
  [[ ! -s $file ]] || sources+=("$file")
done

# root NAME PACKAGE...: builds FOLDER/NAME.tar. Removes usrmerge after it has run, because it requires the
# whole of perl, which Debian's own images do not have.
root() {
  local name=$1 list
  shift
  list=$(printf '%s\n' usr-is-merged "$@" | sort -u | paste -sd,)
  if [[ -f $folder/$name.tar && $(cat "$folder/$name.list" 2>/dev/null) == "$list" ]]; then return; fi
  rm -f "$folder/$name.list"
  mmdebstrap --variant=minbase --include="$list" \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --customize-hook='chroot "$1" apt-get --yes purge --auto-remove usrmerge perl "perl-modules-*"' \
    bookworm "$folder/$name.tar" "${sources[@]}" \
    >"$log" 2>&1 || { tail -n 5 "$log"; echo "skipped: no root of Debian can be made here"; exit 77; }
  echo "$list" >"$folder/$name.list"
}

mapfile -t needed < <(for deb in "$folder"/debs/firn-{server,tools}_*.deb; do
  dpkg-deb --field "$deb" Depends | tr ',' '\n' | awk '{ print $1 }'
done)
root machine systemd procps "${needed[@]}"
root image
