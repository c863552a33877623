#!/usr/bin/env bash
# Prepares the tests of packages and images: builds the .deb files, and a tar file of a Debian root with
# their dependencies. Builds a root again only if its list of packages has changed. If it cannot build
# one, because there is no mirror or no permission to mount, the tests that need it are skipped.
#
#   make.sh BUILD_TREE FOLDER
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$1 folder=$2
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
mkdir -p "$folder"
log=$folder/log

rm -rf "$folder"/debs
# Any date: the times of all files in the packages.
SOURCE_DATE_EPOCH=1767225600 cpack --config "$build/CPackConfig.cmake" -G DEB -B "$folder/debs" >"$log" 2>&1 ||
  { cat "$log"; echo "cpack failed"; exit 1; }
rm -rf "$folder"/debs/_CPack_Packages
# Packages of two releases must not have one name.
for deb in "$folder"/debs/*.deb; do
  [[ $(dpkg-deb --field "$deb" Version) == *~deb$(. /etc/os-release && echo "$VERSION_ID") ]] ||
    { echo "the version of $deb does not name this release of Debian"; exit 1; }
done

# root NAME PACKAGE...: builds FOLDER/NAME.tar. Removes usrmerge after it has run, because it requires the
# whole of perl, which Debian's own images do not have.
root() {
  local name=$1 list log=$log.$1
  shift
  list=$(printf '%s\n' usr-is-merged "$@" | sort -u | paste -sd,)
  if [[ -f $folder/$name.tar && $(cat "$folder/$name.list" 2>/dev/null) == "$release $list" ]]; then return; fi
  rm -f "$folder/$name.list"
  "$here/../../tools/package/debian_root.sh" "$release" "$list" "$folder/$name.tar" --variant=minbase \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --customize-hook='chroot "$1" apt-get --yes purge --auto-remove usrmerge perl "perl-modules-*"' \
    >"$log" 2>&1 || { tail -n 5 "$log"; echo "skipped: no root of Debian can be made here"; exit 77; }
  echo "$release $list" >"$folder/$name.list"
}

mapfile -t needed < <(for deb in "$folder"/debs/firn-{server,tools}_*.deb; do
  dpkg-deb --field "$deb" Depends | tr ',' '\n' | awk '{ print $1 }'
done)
root machine systemd procps "${needed[@]}" &
root image &
code=0
for job in $(jobs -p); do wait "$job" || code=$?; done
exit "$code"
